"""`tenure operation list` and `show`: looking at operations, changing nothing."""

from enum import StrEnum
from typing import Annotated

import typer

from tenure.cli.data import print_fields, print_json, print_lines, print_table
from tenure.cli.exits import Exit
from tenure.cli.operation import shown
from tenure.cli.operation.shown import OperationNumber
from tenure.cli.options import AsJson, DatabaseUrl, SchemaName, opened
from tenure.cli.words import say


class OutcomeName(StrEnum):
    """The outcomes by name, without loading what knows them; a test holds them to be the same."""

    RETRIED = "retried"
    KEY_HELD = "key_held"
    NOT_FAILED = "not_failed"
    CANCELLED = "cancelled"
    REQUESTED = "requested"
    NOT_LIVE = "not_live"
    DISCARDED = "discarded"
    DELETED = "deleted"
    LIVE = "live"
    NOT_FOUND = "not_found"
    MOVED = "moved"
    NOT_QUEUED = "not_queued"
    FIRED = "fired"
    HAD_JOB = "had_job"
    BUSY = "busy"
    REFUSED = "refused"


def list_operations(
    *,
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
    """Show operations, newest first, with how far each has come."""
    with opened(database_url, schema) as admin:
        rows = admin.operations.list(before=before, count=count)
    more = rows[-1].id if len(rows) == count else None
    if as_json:
        print_json({"operations": rows, "next": more})
    elif rows:
        print_table(
            ("id", "kind", "jobs", "state", "done", "outcomes", "by", "reason", "created"),
            [
                (
                    row.id,
                    row.kind,
                    shown.subject(row),
                    row.state,
                    shown.done(row),
                    shown.outcomes(row),
                    row.actor,
                    row.reason,
                    row.created_at,
                )
                for row in rows
            ],
        )
    if more:
        say(f"{len(rows)} shown; more may follow: --before {more}")
    else:
        say(f"{len(rows)} shown; no more")
    return Exit.DONE


def show(
    operation_id: OperationNumber,
    *,
    outcome: Annotated[
        OutcomeName | None, typer.Option("--outcome", help="Only items with this outcome.")
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many items at the most.")
    ] = 20,
    after: Annotated[
        int, typer.Option("--after", metavar="PLACE", min=0, help="Go on behind this place.")
    ] = 0,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one operation: what it does, how far it is, what became of its items, who steered it."""
    from tenure.admin import ItemOutcome

    wanted = None if outcome is None else ItemOutcome(outcome)
    with opened(database_url, schema) as admin:
        row = shown.known(admin, operation_id)
        page = admin.operations.items(operation_id, outcome=wanted, after=after, count=count)
        audit = admin.audit(f"operation:{operation_id}", count=10)
    if as_json:
        print_json({"operation": row, "items": page.items, "next": page.next, "audit": audit})
        return Exit.DONE
    print_fields(shown.fields(row))
    if page.items:
        print_lines([""])
        print_table(
            ("place", "tick", "job", "outcome"),
            [
                (item.place, item.fire_at, item.job_id, item.outcome or "to come")
                for item in page.items
            ],
        )
    print_lines([""])
    print_table(
        ("at", "by", "from", "action", "reason"),
        [(row.at, row.actor, row.source, row.action, row.reason) for row in audit],
    )
    if page.next is not None:
        say(f"{len(page.items)} items shown; more may follow: --after {page.next}")
    return Exit.DONE
