"""A handler that blocks the event loop with the database there: it keeps its lease, and is told of
with the line it is at."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from support.workers import soon
from tests.crash import handlers

if TYPE_CHECKING:
    from support.workers import Bed
    from tests.crash.conftest import Hire, Tell


def test_it_runs_once_keeps_its_lease_and_is_reported(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Three leases long, with a second worker that waits for its job. Shows R3."""
    worker = hire(concurrency=2)
    soon(lambda: bool(bed.workers()), 30, "the worker has no row")
    [job_id] = bed.enqueue([handlers.blocking.bind(bed.path("blocking"), 3 * handlers.LEASE)])
    soon(lambda: bool(bed.effects("blocking").at), 30, "it did not begin")
    hire(concurrency=2)

    def blocked() -> list[dict[str, object]]:
        return [row.meta["blocked"] for row in bed.workers() if row.meta and "blocked" in row.meta]

    soon(lambda: bool(blocked()), handlers.LEASE, "no worker's row says that it is blocked")
    [on_row] = blocked()
    began = time.monotonic()
    soon(lambda: not bed.job(job_id).state.is_live, 5 * handlers.LEASE, "it did not end")

    row = bed.job(job_id)
    assert (row.state, row.attempt, row.losses) == ("completed", 1, 0)
    [attempt] = bed.attempts(job_id)
    assert (attempt.outcome, attempt.attempt, attempt.late) == ("completed", 1, False)
    # Renewed at every third of a lease.
    assert attempt.renewals >= 6
    assert "in blocking" in str(on_row["stack"])
    assert "handlers.py" in str(on_row["stack"])
    log = worker.log()
    assert "event loop blocked" in log
    assert "in blocking" in log
    soon(lambda: not blocked(), 5, "the row still says that it is blocked")
    tell(f"{attempt.renewals} renewals, on the row after {on_row['seconds']} s")
    assert time.monotonic() - began < 4 * handlers.LEASE
