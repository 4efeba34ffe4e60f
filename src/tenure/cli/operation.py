"""`tenure operation`: list, show, pause, resume and abort operations."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import (
    Before,
    CommandContext,
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
from tenure.types import ItemOutcome

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import OperationRow


app: typer.Typer = typer.Typer(
    cls=HelpGroup,
    name="operation",
    help="Manage operations, which act on many jobs.",
)


OperationNumber = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=2**63 - 2, help="Operation id.")
]


def known(admin: "Admin", operation_id: int) -> "OperationRow":
    """Return the operation, or raise an error if it doesn't exist."""
    row = admin.operations.get(operation_id)
    if row is None:
        raise CommandError(
            f"operation {operation_id} does not exist",
            "the id is wrong, or the operation is past its retention",
            "list the operations: tenure operation list",
            Exit.NOT_FOUND,
        )
    return row


def done(row: "OperationRow") -> str:
    """Return how many of the operation's items are done."""
    return f"{row.done} of {row.total}"


def outcomes(row: "OperationRow") -> str | None:
    """Return how many items have each outcome."""
    return ", ".join(f"{count} {name}" for name, count in row.outcomes.items()) or None


def subject(row: "OperationRow") -> str:
    """Describe which jobs the operation acts on."""
    from tenure.admin import to_json

    if row.filter.selector:
        return row.filter.selector
    terms = {name: value for name, value in to_json(row.filter).items() if value is not None}
    if ids := terms.get("ids"):
        return f"{len(ids)} ids"
    return ", ".join(f"{name} {value}" for name, value in terms.items()) or "all"


def fields(row: "OperationRow") -> dict[str, object]:
    """Return the operation's fields by name."""
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
        "waiting": f"{row.waiting} running or locked" if row.waiting else None,
        "rate": f"{row.rate}/s",
        "by": row.actor,
        "from": row.source,
        "reason": row.reason,
        "created": row.created_at,
        "started": row.started_at,
        "ended": row.ended_at,
        "next chunk": row.next_at,
    }


@operator_command(app, "list", example="tenure operation list")
def list_operations(
    ctx: CommandContext,
    *,
    count: Count = 50,
    before: Before = None,
) -> int:
    """List operations with their progress, newest first.

    JSON: `operations` and `next`.
    """
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


@operator_command(app, "show", example="tenure operation show 3 --outcome key_held")
def show(
    ctx: CommandContext,
    operation_id: OperationNumber,
    *,
    outcome: Annotated[
        ItemOutcome | None,
        typer.Option("--outcome", metavar="OUTCOME", help="Only items with this outcome."),
    ] = None,
    count: Annotated[
        int,
        typer.Option("-n", "--count", metavar="N", min=1, max=1000, help="Show at most N items."),
    ] = 20,
    after: Annotated[
        int, typer.Option("--after", metavar="PLACE", min=0, help="Show items after this place.")
    ] = 0,
) -> int:
    """Show an operation with its progress, items and audit log.

    Exits with 3 if it does not exist.

    JSON: `operation`, `items`, `next` and `audit`.
    """
    row = known(ctx.admin, operation_id)
    page = ctx.admin.operations.items(operation_id, outcome=outcome, after=after, count=count)
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
            ("outcome", lambda item: item.outcome or "pending"),
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
    details = "JSON: `operation`."
    if action is _actions.ABORT_OPERATION:
        details = f"Waits for the chunk in progress, at most a second.\n\n{details}"

    @operator_command(app, action, example=f"tenure operation {action.name} 3", details=details)
    def act(ctx: CommandContext, operation_id: OperationNumber) -> int:
        known(ctx.admin, operation_id)
        row: OperationRow = getattr(ctx.admin.operations, action.name)(operation_id, ctx.by)
        facts = {"state": row.state, "done": row.done, "total": row.total}
        outcome = action.outcome(row.id, **facts)
        return ctx.done({"operation": row}, outcome, hint.format(id=row.id))


_add_commands()
