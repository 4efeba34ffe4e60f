"""Convert rows to model objects and leases to parameters, for several parts of the store."""

from collections.abc import Sequence
from typing import Any

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.job import JobRow, State
from tenure._model.lease import Lease
from tenure._model.operation import ItemOutcome, OperationKind, OperationRow, OperationState
from tenure._model.schedule import TickOutcome, TickReason, TickRow
from tenure._rules import operations as rules
from tenure._rules.readable import shown, shown_meta
from tenure._store.steps import Row
from tenure.errors import InvalidValue

Name = tuple[int, int, int]
LAST_ID = 2**63 - 1


def name_of(lease: Lease) -> Name:
    """Return what identifies an attempt. The owner is a number, which hashes fast."""
    return lease.job_id, lease.token, lease.claimed_by.int


def row_name(row: Row) -> Name:
    return row["id"], row["token"], row["claimed_by"].int


def name_arrays(leases: Sequence[Lease]) -> dict[str, object]:
    """Return leases as the parameter arrays that identify them."""
    return {
        "ids": [lease.job_id for lease in leases],
        "tokens": [lease.token for lease in leases],
        "owners": [lease.claimed_by for lease in leases],
    }


def check_isolation(row: Row) -> None:
    """Reject a transaction whose snapshot would hide that the lease was taken."""
    if row["isolation"] != "read committed":
        raise InvalidValue(
            f"a job cannot be settled or guarded in a {row['isolation']} transaction: it would not "
            "see that its lease was taken; open the transaction as READ COMMITTED"
        )


def job_targets(ids: Sequence[JobId]) -> list[str]:
    """Return jobs as audit targets."""
    return [f"job:{job_id}" for job_id in ids]


def job_row(row: Row) -> JobRow:
    owner: Any = row["claimed_by"]
    return JobRow(
        id=JobId(row["id"]),
        state=State(row["state"]),
        queue=row["queue"],
        task=row["task"],
        args=shown(row["args"], "args"),
        priority=row["priority"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        losses=row["losses"],
        token=Token(row["token"]),
        run_at=row["run_at"],
        created_at=row["created_at"],
        key=row["key"],
        held=row.get("held", False),
        cancel_requested=row.get("cancel_requested", False),
        claimed_by=None if owner is None else WorkerId(owner),
        claimed_at=row["claimed_at"],
        lease_expires_at=row["lease_expires_at"],
        ended_at=row.get("ended_at"),
        done_reason=row.get("done_reason"),
        result=shown(row.get("result"), "the result"),
        cursor=shown(row["cursor"], "the cursor"),
        progress=shown(row["progress"], "the progress"),
        items=row["items"],
        meta=shown_meta(row["meta"]),
        worker_losses=row["worker_losses"],
        deaths=row["deaths"],
        suspect=row["suspect"],
    )


def tick_row(row: Row) -> TickRow:
    return TickRow(
        schedule=row["schedule"],
        fire_at=row["fire_at"],
        outcome=TickOutcome(row["outcome"]),
        reason=None if row["reason"] is None else TickReason(row["reason"]),
        job_id=row["job_id"],
        recorded_at=row["recorded_at"],
    )


def operation_row(row: Row) -> OperationRow:
    return OperationRow(
        id=row["id"],
        kind=OperationKind(row["kind"]),
        state=OperationState(row["state"]),
        filter=rules.filter_of(row["filter"]),
        changes=rules.changes_of(row["changes"]),
        rate=row["rate"],
        total=row["total"],
        done=row["done"],
        outcomes={ItemOutcome(name): number for name, number in row["outcomes"].items()},
        actor=row["actor"],
        source=row["source"],
        reason=row["reason"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        next_at=row["next_at"],
        waiting=len(row["waiting"] or ()),
    )
