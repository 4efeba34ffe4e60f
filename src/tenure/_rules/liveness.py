"""Whether workers are live, stale or draining, and whether queues are paused."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from tenure._model.queue import EVERY_QUEUE
from tenure._model.worker import Health, WorkerRow, WorkerState
from tenure.config import DEFAULTS

FRESH = 3 * DEFAULTS.heartbeat_interval + timedelta(seconds=1)
_TAKING = (Health.ACTIVE, Health.IDLE)


def live(workers: Sequence[WorkerRow]) -> list[WorkerRow]:
    """Return the workers with a recent heartbeat, draining or not."""
    return [w for w in workers if w.state is not WorkerState.OFFLINE and w.heartbeat_age <= FRESH]


def serving(workers: Sequence[WorkerRow], queue: str) -> list[WorkerRow]:
    return [worker for worker in workers if accepts_jobs_from(health(worker), worker.queues, queue)]


def accepts_jobs_from(health: Health, queues: Collection[str], queue: str) -> bool:
    """Return whether a worker with this health and these queues accepts new jobs from a queue."""
    return health in _TAKING and (queue in queues or EVERY_QUEUE in queues)


def unknown_tasks(worker: WorkerRow) -> set[str]:
    """Return the tasks that this worker has seen but doesn't know."""
    return set((worker.meta or {}).get("unknown_tasks", ()))


def unknown_to_all(workers: Sequence[WorkerRow]) -> list[str]:
    """Return the tasks that every live worker has seen but doesn't know, sorted."""
    unknown = [unknown_tasks(worker) for worker in live(workers)]
    return sorted(set.intersection(*unknown)) if unknown else []


def health(worker: WorkerRow) -> Health:
    """Return a worker's health, based on its state and heartbeat."""
    if worker.state is WorkerState.OFFLINE:
        return Health.OFFLINE
    if worker.heartbeat_age > FRESH:
        return Health.STALE
    if worker.state is WorkerState.DRAINING or worker.drain_requested:
        return Health.DRAINING
    return Health.ACTIVE if worker.running else Health.IDLE


class Pausable(Protocol):
    """Something that can be paused, such as a queue's row."""

    @property
    def paused_at(self) -> datetime | None: ...

    @property
    def paused_until(self) -> datetime | None:
        """Return when the pause ends; None: until resumed."""


def is_paused(row: Pausable | None, now: datetime) -> bool:
    """Return whether the row is paused now."""
    if row is None or row.paused_at is None:
        return False
    return row.paused_until is None or row.paused_until > now
