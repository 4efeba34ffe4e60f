"""An operation by its id, and how it is shown."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure

if TYPE_CHECKING:
    from tenure.admin import Admin, OperationRow

OperationNumber = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=2**63 - 2, help="The operation's id.")
]


def known(admin: "Admin", operation_id: int) -> "OperationRow":
    """The operation of this id; a failure with what to do if there is none."""
    row = admin.operations.get(operation_id)
    if row is None:
        raise Failure(
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
    from tenure.admin import plain

    if row.filter.selector:
        return row.filter.selector
    said = {name: value for name, value in plain(row.filter).items() if value is not None}
    if ids := said.get("ids"):
        return f"{len(ids)} ids"
    return ", ".join(f"{name} {value}" for name, value in said.items()) or "all"


def fields(row: "OperationRow") -> dict[str, object]:
    """All there is to say of it, by name."""
    from tenure.admin import plain

    changes = plain(row.changes) or {}
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
