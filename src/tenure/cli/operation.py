"""`tenure operation`: list, show, pause, resume, abort."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    Before,
    CommandContext,
    Commands,
    Count,
    operator_command,
)
from tenure.cli.output import (
    print_audit,
    print_fields,
    print_json,
    print_lines,
    print_note,
    print_page_end,
    print_rows,
)

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import OperationRow


app: typer.Typer = typer.Typer(
    cls=Commands,
    name="operation",
    help="Operations on many jobs: look at them, pause, resume and abort them.",
)


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


@operator_command(app, "list")
def list_operations(
    ctx: CommandContext,
    *,
    count: Count = 50,
    before: Before = None,
) -> int:
    """Show operations, newest first, with how far each has come."""
    rows = ctx.admin.operations.list(before=before, count=count)
    more = rows[-1].id if len(rows) == count else None
    if ctx.as_json:
        print_json({"operations": rows, "next": more})
    elif rows:
        print_rows(
            rows,
            *("id", "kind", ("jobs", subject), "state", ("done", done), ("outcomes", outcomes)),
            *(("by", "actor"), "reason", ("created", "created_at")),
        )
    print_page_end(len(rows), "--before", more)
    return Exit.DONE


@operator_command(app, "show")
def show(
    ctx: CommandContext,
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
) -> int:
    """Show one operation: what it does, how far it is, what became of its items, who steered it."""
    from tenure.types import ItemOutcome

    wanted = None if outcome is None else ItemOutcome(outcome)
    row = known(ctx.admin, operation_id)
    page = ctx.admin.operations.items(operation_id, outcome=wanted, after=after, count=count)
    audit = ctx.admin.audit.list(f"operation:{operation_id}", count=10)
    if ctx.as_json:
        print_json({"operation": row, "items": page.items, "next": page.next, "audit": audit})
        return Exit.DONE
    print_fields(fields(row))
    if page.items:
        print_lines([""])
        print_rows(
            page.items,
            *("place", ("tick", "fire_at"), ("job", "job_id")),
            ("outcome", lambda item: item.outcome or "to come"),
        )
    print_lines([""])
    print_audit(audit)
    if page.next is not None:
        print_note(f"{len(page.items)} items shown; more may follow: --after {page.next}")
    return Exit.DONE


def _add_commands() -> None:
    for action, hint in (
        (_actions.PAUSE_OPERATION, "to resume it: tenure operation resume {id}"),
        (_actions.RESUME_OPERATION, "to see it: tenure operation show {id}"),
        (_actions.ABORT_OPERATION, "the rest is unchanged"),
    ):
        _add_command(action, hint)


def _add_command(action: Action, hint: str) -> None:
    @operator_command(app, action)
    def act(ctx: CommandContext, operation_id: OperationNumber) -> int:
        known(ctx.admin, operation_id)
        row: OperationRow = getattr(ctx.admin.operations, action.name)(operation_id, ctx.by)
        facts = {"state": row.state, "done": row.done, "total": row.total}
        outcome = action.outcome(row.id, **facts)
        return ctx.done({"operation": row}, outcome, hint.format(id=row.id))


_add_commands()
