"""All commands, and how their errors are printed."""

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
    erase,
    failed,
    init,
    job,
    key,
    notify,
    operation,
    processes,
    queue,
    schedule,
    session,
    setting,
    token,
    top,
    worker,
)
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.help import HelpGroup, argument_name
from tenure.cli.options import plain_command
from tenure.cli.output import print_error
from tenure.errors import TenureError

app: typer.Typer = typer.Typer(
    cls=HelpGroup,
    name="tenure",
    help="A durable job queue on PostgreSQL.",
    epilog=(
        "Start here: tenure init, then tenure dev. Details: tenure COMMAND --help.\n\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 not allowed, 5 conflict,"
        " 6 database unreachable, 7 partly done, 8 schema mismatch, 130 interrupted."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
plain_command(app, "init", example="tenure init myproject")(init.init)
plain_command(app, "dev", example="tenure dev jobs:app")(dev.dev)
plain_command(app, "demo", example="tenure demo --port 8500")(demo.demo)
plain_command(app, "scheduler", example="tenure scheduler jobs:app")(processes.scheduler)
plain_command(app, "server", example="tenure server --port 8500")(processes.server)
plain_command(app, "probe", example="tenure probe --name web-1")(processes.probe)
doctor.add_command(app)
plain_command(app, "top", example="tenure top --once")(top.top)
audit.add_command(app)
erase.add_command(app)
app.add_typer(job.app)
app.add_typer(key.app)
app.add_typer(queue.app)
app.add_typer(worker.app)
app.add_typer(schedule.app)
app.add_typer(failed.app)
app.add_typer(operation.app)
app.add_typer(db.app)
app.add_typer(setting.app)
app.add_typer(token.app)
app.add_typer(session.app)
app.add_typer(notify.app)

# What Typer raises for an invalid command line. It has no public name.
_Usage = cast("type[Exception]", typer.BadParameter.__bases__[0])
# Larger limits only protect the database, so showing them wouldn't help users.
_MILLIONS = 10**9


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A durable job queue on PostgreSQL."""
    if version:
        from importlib.metadata import version as release

        typer.echo(f"tenure {release('tenure')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    try:
        code = app(args=arguments, prog_name="tenure", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as failed:
        return failed.print()
    except TenureError as error:
        return failure(error).print()
    except _Usage as error:
        return _usage_error(error)
    except ImportError as error:
        return _no_driver(error)
    except (typer.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe. Keep the interpreter's final flush from failing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    return int(code or Exit.DONE)


def _usage_error(error: BaseException) -> Exit:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "tenure"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    print_error("the command line is wrong", _rule(error) or message, f"see: {path} --help")
    return Exit.USAGE


def _rule(error: BaseException) -> str | None:
    """Return `<name> must be <rule>, got <value>` for a value that Typer rejected."""
    parameter, errors = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if parameter is None or errors is None:
        return None
    value = errors()[0]["input"]
    name = argument_name(parameter).strip("[]")
    if parameter.param_type_name == "option":
        name = max(parameter.opts, key=len)
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is None and most is None:
        choices = str(parameter.metavar or "").split("|")
        rule = f"one of {', '.join(choices)}" if len(choices) > 1 else "a number"
    elif most is None or most > _MILLIONS:
        rule = f"a number of at least {least}"
    else:
        rule = f"a number from {least} to {most}"
    return f"{name} must be {rule}, got {value}"


def _no_driver(error: ImportError) -> Exit:
    """Explain a missing libpq. Any other failed import is a bug."""
    if "psycopg" not in str(error):
        raise error
    print_error(
        "the database driver cannot be loaded",
        str(error),
        'install one with its own libpq: pip install "tenure[binary]", or install libpq',
    )
    return Exit.FAILED
