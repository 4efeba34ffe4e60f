"""`tenure erase`: erase what is stored about a person."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.operation_progress import start_and_follow
from tenure.cli.options import CommandContext, operator_command
from tenure.cli.output import print_fields, print_json, print_note
from tenure.cli.selectors import OfQueue, OfTask, Rate, Yes, build_selector

if TYPE_CHECKING:
    from tenure.types import OperationRow, Selector

_DETAILS = """\
Deletes matching jobs in every state, with their items, keys and stored responses, and matching
schedules. Clears the text fields of their attempts and audit rows. Runs as an operation on the
workers. Running jobs are asked to stop, and are erased once they finish. This cannot be undone.
A reason is required.

JSON: `dry_run`, `detached` and `operation`. With `--dry-run`: `dry_run`, `total` and `rows`, the
number of rows by table."""


def erase(
    ctx: CommandContext,
    terms: Annotated[
        list[str] | None,
        typer.Argument(metavar="SELECTOR…", help="Which jobs, such as args.customer.id:7."),
    ] = None,
    *,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Jobs with this tag; repeat for more."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="Jobs with this key; repeat for more."),
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=VALUE", help="Jobs with this argument."),
    ] = None,
    queue: OfQueue = None,
    task: OfTask = None,
    rate: Rate = 500,
    yes: Yes = False,
) -> int:
    selector = _selector(terms, tag, key, arg, queue=queue, task=task)

    def start(dry_run: bool) -> "OperationRow":
        erasure = ctx.admin.erase(selector, ctx.by, rate=rate, dry_run=dry_run)
        if dry_run:
            listed = ", ".join(f"{count} {table}" for table, count in erasure.rows.items() if count)
            print_note(f"rows that belong to the jobs: {listed or 'none'}")
        return erasure.operation

    if not ctx.dry_run:
        return start_and_follow(
            ctx.admin, start, of="jobs", yes=yes, dry_run=False, as_json=ctx.as_json
        )
    erasure = ctx.admin.erase(selector, ctx.by, rate=rate, dry_run=True)
    total = erasure.operation.total
    if ctx.as_json:
        print_json({"dry_run": True, "total": total, "rows": erasure.rows})
    else:
        print_fields(erasure.rows)
    print_note(f"dry run: {total} jobs match; nothing was changed")
    return Exit.DONE


def _selector(
    terms: list[str] | None,
    tags: list[str] | None,
    keys: list[str] | None,
    args: list[str] | None,
    *,
    queue: str | None,
    task: str | None,
) -> "Selector":
    from tenure.admin import selector_text
    from tenure.types import Argument, Selector

    options = Selector(
        tag=tuple(tags or ()),
        key=tuple(keys or ()),
        args=tuple(Argument(path, (value,)) for path, value in map(_argument, args or ())),
    )
    return build_selector([*(terms or ()), selector_text(options)], queue=queue, task=task)


def _argument(text: str) -> tuple[tuple[str, ...], str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise CommandError(
            "the argument is not valid",
            f"--arg must be NAME=VALUE, got {text!r}",
            "write it as --arg customer_id=7, or --arg customer.id=7",
            Exit.USAGE,
        )
    return tuple(name.split(".")), value


def add_command(app: typer.Typer) -> None:
    """Add `tenure erase`."""
    operator_command(
        app,
        _actions.ERASE,
        example="tenure erase --tag customer:7 --reason 'ticket 12' --dry-run",
        details=_DETAILS,
        dry_run=True,
    )(erase)
