"""How a worker fares, by what it says of itself and when it last said it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tenure._model.ids import WorkerId
from tenure._model.worker import Health, WorkerRow, WorkerState
from tenure._rules.liveness import FRESH, health

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = FRESH + timedelta(seconds=1)


def worker(
    state: WorkerState, *, age: timedelta = timedelta(0), running: int = 0, drain: bool = False
) -> WorkerRow:
    return WorkerRow(
        id=WorkerId(UUID(int=1)),
        name="anna",
        host="host",
        pid=1,
        version="1",
        language="python",
        queues=["mail"],
        slots=10,
        running=running,
        state=state,
        drain_requested=drain,
        started_at=NOW,
        last_heartbeat_at=NOW,
        heartbeat_age=age,
        meta=None,
    )


@pytest.mark.parametrize(
    ("row", "given"),
    [
        (worker(WorkerState.ACTIVE, running=1), Health.ACTIVE),
        (worker(WorkerState.ACTIVE), Health.IDLE),
        (worker(WorkerState.ACTIVE, running=1, drain=True), Health.DRAINING),
        (worker(WorkerState.DRAINING), Health.DRAINING),
        (worker(WorkerState.ACTIVE, running=1, age=LATER), Health.STALE),
        (worker(WorkerState.DRAINING, age=LATER), Health.STALE),
        (worker(WorkerState.OFFLINE, age=LATER), Health.OFFLINE),
    ],
)
def test_a_worker_is_seen_by_what_it_says_and_when(row: WorkerRow, given: Health) -> None:
    """Shows R30."""
    assert health(row) is given
