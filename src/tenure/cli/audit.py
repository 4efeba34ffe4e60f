"""`tenure audit`: what people did, from wherever they did it."""

from dataclasses import replace
from typing import Annotated

import typer

from tenure.cli.errors import Exit
from tenure.cli.options import Before, CommandContext, Count
from tenure.cli.output import print_json, print_page_end, print_rows


def audit(
    ctx: CommandContext,
    *,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="To this: job:5, queue:mail.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="TEXT", help="By who has this in the name.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="WORD", help="From cli, page, http, python.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option("--action", metavar="WORD", help="By queue.pause; or queue, all of a kind."),
    ] = None,
    count: Count = 50,
    before: Before = None,
) -> int:
    """Show who did what, to what and why, newest first."""
    page = ctx.admin.audit.search(
        target=target, actor=actor, source=source, action=action, count=count, before=before
    )
    hide = ctx.admin.settings.redactor().value
    rows = [replace(row, before=hide(row.before), after=hide(row.after)) for row in page.rows]
    if ctx.as_json:
        print_json({"audit": rows, "next": page.next})
    elif rows:
        print_rows(
            rows, "id", "at", ("by", "actor"), ("from", "source"), "action", "target", "reason"
        )
    print_page_end(len(rows), "--before", page.next)
    return Exit.DONE
