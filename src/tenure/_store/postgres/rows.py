"""Rows into nouns, and leases as parameters: what several parts of the store need."""

from collections.abc import Sequence
from typing import Any

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.job import JobRow, State
from tenure._model.lease import Lease
from tenure._model.schedule import TickOutcome, TickReason, TickRow
from tenure._store.steps import Row
from tenure.errors import InvalidValue

Name = tuple[int, int, int]
LAST_ID = 2**63 - 1


def name_of(lease: Lease) -> Name:
    """What names a running period: the whole lease, without its length. Its owner as a number,
    which is hashed quickly: batches of leases are looked up by their names."""
    return lease.job_id, lease.token, lease.claimed_by.int


def row_name(row: Row) -> Name:
    """The same, from a row that answers for a lease."""
    return row["id"], row["token"], row["claimed_by"].int


def name_arrays(leases: Sequence[Lease]) -> dict[str, object]:
    """Whole leases as the parameter arrays that name them."""
    return {
        "ids": [lease.job_id for lease in leases],
        "tokens": [lease.token for lease in leases],
        "owners": [lease.claimed_by for lease in leases],
    }


def check_isolation(row: Row) -> None:
    """Refuse a transaction whose one snapshot would hide that the lease was taken meanwhile."""
    if row["isolation"] != "read committed":
        raise InvalidValue(
            f"a job cannot be settled or guarded in a {row['isolation']} transaction: it would not "
            "see that its lease was taken; open the transaction as READ COMMITTED"
        )


def job_targets(ids: Sequence[JobId]) -> list[str]:
    """How audit rows name jobs."""
    return [f"job:{job_id}" for job_id in ids]


def job_row(row: Row) -> JobRow:
    """A job from its row, wherever it was read."""
    owner: Any = row["claimed_by"]
    return JobRow(
        id=JobId(row["id"]),
        state=State(row["state"]),
        queue=row["queue"],
        task=row["task"],
        args=row["args"],
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
        result=row.get("result"),
        cursor=row["cursor"],
        progress=row["progress"],
        items=row["items"],
        meta=row["meta"],
        worker_losses=row["worker_losses"],
        deaths=row["deaths"],
        suspect=row["suspect"],
    )


def tick_row(row: Row) -> TickRow:
    """A recorded tick from its row."""
    return TickRow(
        schedule=row["schedule"],
        fire_at=row["fire_at"],
        outcome=TickOutcome(row["outcome"]),
        reason=None if row["reason"] is None else TickReason(row["reason"]),
        job_id=row["job_id"],
        recorded_at=row["recorded_at"],
    )
