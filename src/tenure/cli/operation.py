"""`tenure operation`: list, show, pause, resume, abort."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
)
from tenure.cli.output import print_fields, print_json, print_lines, print_note, print_table

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import OperationRow


OperationNumber = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=2**63 - 2, help="The operation's id.")
]


def known(admin: "Admin", operation_id: int) -> "OperationRow":
    """The operation of this id; a failure with what to do if there is none."""
    row = admin.operations.get(operation_id)
    if row is None:
        raise CommandError(
            f"there is no operation {operation_id}",
            "it never was, or it ended long ago and is no longer kept",
            "see which there are: tenure operation list",
            Exit.NOT_FOUND,
        )
    return row


def done(row: "OperationRow") -> str:
    """How far it has come."""
    return f"{row.done} of {row.total}"


def outcomes(row: "OperationRow") -> str | None:
    """How many items have which outcome, in words."""
    return ", ".join(f"{count} {name}" for name, count in row.outcomes.items()) or None


def subject(row: "OperationRow") -> str:
    """Which jobs it is for, in words."""
    from tenure.admin import to_json

    if row.filter.selector:
        return row.filter.selector
    said = {name: value for name, value in to_json(row.filter).items() if value is not None}
    if ids := said.get("ids"):
        return f"{len(ids)} ids"
    return ", ".join(f"{name} {value}" for name, value in said.items()) or "all"


def fields(row: "OperationRow") -> dict[str, object]:
    """All there is to say of it, by name."""
    from tenure.admin import to_json

    changes = to_json(row.changes) or {}
    return {
        "operation": row.id,
        "kind": row.kind,
        "jobs": subject(row),
        "changes": {name: value for name, value in changes.items() if value is not None} or None,
        "state": row.state,
        "done": done(row),
        "outcomes": outcomes(row),
        "rate": f"{row.rate} a second",
        "by": row.actor,
        "from": row.source,
        "reason": row.reason,
        "created": row.created_at,
        "started": row.started_at,
        "ended": row.ended_at,
        "next chunk": row.next_at,
    }


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
    with connect_admin(database_url, schema) as admin:
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
                    subject(row),
                    row.state,
                    done(row),
                    outcomes(row),
                    row.actor,
                    row.reason,
                    row.created_at,
                )
                for row in rows
            ],
        )
    if more:
        print_note(f"{len(rows)} shown; more may follow: --before {more}")
    else:
        print_note(f"{len(rows)} shown; no more")
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
    from tenure.types import ItemOutcome

    wanted = None if outcome is None else ItemOutcome(outcome)
    with connect_admin(database_url, schema) as admin:
        row = known(admin, operation_id)
        page = admin.operations.items(operation_id, outcome=wanted, after=after, count=count)
        audit = admin.audit(f"operation:{operation_id}", count=10)
    if as_json:
        print_json({"operation": row, "items": page.items, "next": page.next, "audit": audit})
        return Exit.DONE
    print_fields(fields(row))
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
        print_note(f"{len(page.items)} items shown; more may follow: --after {page.next}")
    return Exit.DONE


def pause(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let no more of an operation be done until it is resumed; what is done stays done."""
    with connect_admin(database_url, schema) as admin:
        known(admin, operation_id)
        row = admin.operations.pause(operation_id, actor(who, reason))
    return _told(row, f"to go on: tenure operation resume {operation_id}", as_json=as_json)


def resume(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a paused operation go on where it was."""
    with connect_admin(database_url, schema) as admin:
        known(admin, operation_id)
        row = admin.operations.resume(operation_id, actor(who, reason))
    return _told(row, f"to see it: tenure operation show {operation_id}", as_json=as_json)


def abort(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """End an operation now; what is done stays done, and the rest is never done."""
    with connect_admin(database_url, schema) as admin:
        known(admin, operation_id)
        row = admin.operations.abort(operation_id, actor(who, reason))
    return _told(row, "the rest is as it was", as_json=as_json)


def _told(row: "OperationRow", rest: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"operation": row})
    print_note(f"operation {row.id} is {row.state}, {done(row)} done; {rest}")
    return Exit.DONE


app: typer.Typer = typer.Typer(
    cls=Commands,
    name="operation",
    help="Operations on many jobs: look at them, pause, resume and abort them.",
)
app.command("list")(list_operations)
app.command("show")(show)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("abort")(abort)
