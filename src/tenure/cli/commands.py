"""The commands together, and what becomes of their errors."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from tenure.cli import (
    audit,
    db,
    demo,
    dev,
    doctor,
    failed,
    init,
    job,
    operation,
    processes,
    queue,
    schedule,
    setting,
    token,
    top,
    worker,
)
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.options import Commands, operator_command
from tenure.cli.output import print_error
from tenure.errors import TenureError

app: typer.Typer = typer.Typer(
    cls=Commands,
    name="tenure",
    help="A durable job queue on PostgreSQL. Exit codes: docs/reference/commands.md.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init.init)
app.command("dev")(dev.dev)
app.command("demo")(demo.demo)
app.command("scheduler")(processes.scheduler)
app.command("server")(processes.server)
app.command("probe")(processes.probe)
app.command("doctor")(doctor.doctor)
app.command("top")(top.top)
operator_command(app, "audit")(audit.audit)
app.add_typer(job.app)
app.add_typer(queue.app)
app.add_typer(worker.app)
app.add_typer(schedule.app)
app.add_typer(failed.app)
app.add_typer(operation.app)
app.add_typer(db.app)
app.add_typer(setting.app)
app.add_typer(token.app)

# What Typer raises for a command line that it does not understand; it has no public name.
_Usage = cast("type[Exception]", typer.BadParameter.__bases__[0])


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Say which release this is.")] = False,
) -> None:
    """A durable job queue on PostgreSQL. Exit codes: docs/reference/commands.md."""
    if version:
        from importlib.metadata import version as release

        typer.echo(f"tenure {release('tenure')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Do what a command line says, and answer with the exit code."""
    try:
        code = app(args=arguments, prog_name="tenure", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as failed:
        return failed.print()
    except TenureError as error:
        return failure(error).print()
    except _Usage as error:
        return _misunderstood(error)
    except ImportError as error:
        return _no_driver(error)
    except (typer.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read has seen enough; let the interpreter's last flush not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    return int(code or Exit.DONE)


def _misunderstood(error: BaseException) -> Exit:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "tenure"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    print_error("the command line was not understood", message, f"see: {path} --help")
    return Exit.USAGE


def _no_driver(error: ImportError) -> Exit:
    """Without a libpq the driver does not load; any other import that fails is a defect."""
    if "psycopg" not in str(error):
        raise error
    print_error(
        "the database's driver cannot be loaded",
        str(error),
        'install it with its own libpq: pip install "tenure[binary]"; or the libpq of your system',
    )
    return Exit.FAILED
