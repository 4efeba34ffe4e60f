"""Whether a worker is live, stale or draining, and a queue paused."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from tenure._model.queue import EVERY_QUEUE
from tenure._model.worker import Health, WorkerRow, WorkerState
from tenure.config import DEFAULTS

FRESH = 3 * DEFAULTS.heartbeat_interval + timedelta(seconds=1)
_TAKING = (Health.ACTIVE, Health.IDLE)


def live(workers: Sequence[WorkerRow]) -> list[WorkerRow]:
    """Those that are there, draining or not."""
    return [w for w in workers if w.state is not WorkerState.OFFLINE and w.heartbeat_age <= FRESH]


def serving(workers: Sequence[WorkerRow], queue: str) -> list[WorkerRow]:
    """Those that take jobs from this queue."""
    return [worker for worker in workers if accepts_jobs_from(health(worker), worker.queues, queue)]


def accepts_jobs_from(health: Health, queues: Collection[str], queue: str) -> bool:
    """Whether a worker that fares so, and serves these queues, takes new jobs from one of them."""
    return health in _TAKING and (queue in queues or EVERY_QUEUE in queues)


def unknown_tasks(worker: WorkerRow) -> set[str]:
    """The tasks that this worker met, did not know, and leaves to others."""
    return set((worker.meta or {}).get("unknown_tasks", ()))


def unknown_to_all(workers: Sequence[WorkerRow]) -> list[str]:
    """The tasks that every live worker has met and does not know, by name."""
    unknown = [unknown_tasks(worker) for worker in live(workers)]
    return sorted(set.intersection(*unknown)) if unknown else []


def health(worker: WorkerRow) -> Health:
    """How a worker fares, by what it says of itself and when it last said it."""
    if worker.state is WorkerState.OFFLINE:
        return Health.OFFLINE
    if worker.heartbeat_age > FRESH:
        return Health.STALE
    if worker.state is WorkerState.DRAINING or worker.drain_requested:
        return Health.DRAINING
    return Health.ACTIVE if worker.running else Health.IDLE


class Pausable(Protocol):
    """Whatever can be paused until a time: a queue's row, or what is told of it."""

    @property
    def paused_at(self) -> datetime | None:
        """Since when."""

    @property
    def paused_until(self) -> datetime | None:
        """Until when; None is until it is resumed."""


def is_paused(row: Pausable | None, now: datetime) -> bool:
    """Whether this row does; a pause ends by itself where it was said until when."""
    if row is None or row.paused_at is None:
        return False
    return row.paused_until is None or row.paused_until > now
