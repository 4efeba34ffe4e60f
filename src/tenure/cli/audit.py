"""`tenure audit`: what people did, from wherever they did it."""

from dataclasses import replace
from typing import Annotated

import typer

from tenure.cli.errors import Exit
from tenure.cli.options import AsJson, DatabaseUrl, SchemaName, connect_admin
from tenure.cli.output import print_json, print_note, print_table


def audit(
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
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 50,
    before: Annotated[
        int | None, typer.Option("--before", metavar="ID", help="Go on below this id.")
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show who did what, to what and why, newest first."""
    with connect_admin(database_url, schema) as admin:
        page = admin.search_audit(
            target=target, actor=actor, source=source, action=action, count=count, before=before
        )
        hide = admin.redactor().value
    rows = [replace(row, before=hide(row.before), after=hide(row.after)) for row in page.rows]
    if as_json:
        print_json({"audit": rows, "next": page.next})
    elif rows:
        print_table(
            ("id", "at", "by", "from", "action", "target", "reason"),
            [
                (row.id, row.at, row.actor, row.source, row.action, row.target, row.reason)
                for row in rows
            ],
        )
    more = "no more" if page.next is None else f"more may follow: --before {page.next}"
    print_note(f"{len(rows)} shown; {more}")
    return Exit.DONE
