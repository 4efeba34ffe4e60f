"""`tenure audit`: search the audit log."""

from typing import Annotated

import typer

from tenure.cli.errors import Exit
from tenure.cli.options import Before, CommandContext, Count, operator_command
from tenure.cli.output import print_json, print_page_end, print_rows


def audit(
    ctx: CommandContext,
    *,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="TARGET", help="Only actions on this target, such as queue:mail."
        ),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor", metavar="TEXT", help="Only actions by actors whose name contains TEXT."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="cli|page|http|python", help="Only actions from this source."
        ),
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            "--action", metavar="NAME", help="Only this action, such as queue.pause or queue."
        ),
    ] = None,
    count: Count = 50,
    before: Before = None,
) -> int:
    """Show who did what, when and why, newest first.

    `--action queue` matches all queue actions. Each call searches about 100,000 rows, so the list
    may be short. The command prints how to continue.

    JSON: `audit`, with the values before and after each action, and `next`. Redacted fields are
    hidden.
    """
    page = ctx.admin.audit.search(
        target=target, actor=actor, source=source, action=action, count=count, before=before
    )
    rows = [*map(ctx.admin.settings.redactor().audit, page.rows)]
    if ctx.as_json:
        print_json({"audit": rows, "next": page.next})
    elif rows:
        print_rows(
            rows, "id", "at", ("by", "actor"), ("from", "source"), "action", "target", "reason"
        )
    print_page_end(len(rows), "--before", page.next)
    return Exit.DONE


def add_command(app: typer.Typer) -> None:
    """Add `tenure audit`."""
    operator_command(app, "audit", example="tenure audit --target queue:mail")(audit)
