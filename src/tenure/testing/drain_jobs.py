"""`drain`: run all due jobs here, one after another."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import cast

from tenure._model.job import PRIORITIES
from tenure._model.lease import ClaimResult
from tenure._model.queue import Lane
from tenure._registry import require_sequence
from tenure._store.engine import Engine
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.app import Tenure
from tenure.config import LONGEST_LEASE, LONGEST_WAIT, duration
from tenure.errors import InvalidValue
from tenure.task import Seconds
from tenure.testing.engines import ClockedEngine
from tenure.testing.runner import WORKER, JobRunner, RunRecord


@dataclass(frozen=True, slots=True)
class Drained:
    """The attempts that `drain` ran, in order.

    Attributes:
        ran: One record for each attempt.
    """

    ran: Sequence[RunRecord]

    def __len__(self) -> int:
        return len(self.ran)

    def __str__(self) -> str:
        counts = Counter(record.ending for record in self.ran)
        return ", ".join(f"{count} {ending}" for ending, count in counts.items()) or "nothing ran"

    def _count(self, ending: str) -> int:
        return sum(record.ending == ending for record in self.ran)

    @property
    def completed(self) -> int:
        """How many attempts completed."""
        return self._count("completed")

    @property
    def failed(self) -> int:
        """How many jobs failed permanently and are now dead letters."""
        return self._count("failed")

    @property
    def retrying(self) -> int:
        """How many attempts failed and left their job waiting for a retry."""
        return self._count("retrying")

    @property
    def snoozed(self) -> int:
        """How many attempts raised `Snooze`."""
        return self._count("snoozed")

    @property
    def cancelled(self) -> int:
        """How many jobs were cancelled or had expired."""
        return self._count("cancelled")

    @property
    def errors(self) -> Sequence[BaseException]:
        """The exceptions raised by failed handlers."""
        return [record.error for record in self.ran if record.error is not None]


def drain(
    app: Tenure,
    *,
    queues: Sequence[str] | None = None,
    fast_forward: Seconds = 0,
    raise_errors: bool = True,
    limit: int = 1000,
) -> Drained:
    """Run all due jobs here, including the jobs that they enqueue, until none are left.

    Timeouts aren't enforced, and the function doesn't wait for jobs that aren't due yet.

    Args:
        app: The app.
        queues: The queues to drain (default: all).
        fast_forward: Pretend that this much time has passed. Delayed, snoozed and retried jobs that
            become due within it run too (default: 0).
        raise_errors: Stop at the first handler that fails, and raise its error (default: True).
        limit: Stop after this many attempts (default: 1,000).

    Returns:
        The attempts that ran.

    Raises:
        InvalidValue: `fast_forward` is out of range, or more than `limit` attempts ran.
    """
    course = _DrainRun(queues, duration(fast_forward), raise_errors=raise_errors, limit=limit)
    app.engine.run(course.begin(app.engine.store))
    with app.with_engine(course.engine(app.engine)):
        engine, bench = app.engine, JobRunner(app, is_async=False)
        while (claims := engine.run(course.claim(engine.store))) is not None:
            course.note(bench.run(claims))
    return Drained(course.ran)


async def adrain(
    app: Tenure,
    *,
    queues: Sequence[str] | None = None,
    fast_forward: Seconds = 0,
    raise_errors: bool = True,
    limit: int = 1000,
) -> Drained:
    """Async version of `drain`: `async def` handlers run on this loop, others in threads.

    Args:
        app: The app.
        queues: The queues to drain (default: all).
        fast_forward: Pretend that this much time has passed. Delayed, snoozed and retried jobs that
            become due within it run too (default: 0).
        raise_errors: Stop at the first handler that fails, and raise its error (default: True).
        limit: Stop after this many attempts (default: 1,000).

    Returns:
        The attempts that ran.

    Raises:
        InvalidValue: `fast_forward` is out of range, or more than `limit` attempts ran.
    """
    course = _DrainRun(queues, duration(fast_forward), raise_errors=raise_errors, limit=limit)
    await app.engine.arun(course.begin(app.engine.store))
    with app.with_engine(course.engine(app.engine)):
        engine, bench = app.engine, JobRunner(app, is_async=True)
        while (claims := await engine.arun(course.claim(engine.store))) is not None:
            course.note(await bench.arun(claims))
    return Drained(course.ran)


class _DrainRun:
    """One `drain` call: which lanes it reads, and up to what time."""

    def __init__(
        self, queues: Sequence[str] | None, ahead: timedelta, *, raise_errors: bool, limit: int
    ) -> None:
        if not timedelta(0) <= ahead <= LONGEST_WAIT:
            raise InvalidValue(f"fast_forward must be from 0 to 100 years, got {ahead}")
        self._queues = None if queues is None else require_sequence(queues, "queues")
        self._ahead = ahead
        self._raise_errors = raise_errors
        self._limit = limit
        self._began = datetime.now(UTC)
        self._started = monotonic()
        self._passed = timedelta(0)
        self.ran: list[RunRecord] = []

    def engine(self, engine: Engine) -> Engine:
        """Return the engine, using either the database's own clock or one set ahead of it."""
        return cast("Engine", ClockedEngine(engine, self._now)) if self._ahead else engine

    def begin(self, store: Store) -> Op[None]:
        """Read the database's clock."""
        _, self._began = yield from store.leases.next_due([])
        self._started = monotonic()

    def _now(self) -> datetime:
        return self._began + timedelta(seconds=monotonic() - self._started) + self._passed

    def claim(self, store: Store) -> Op[ClaimResult | None]:
        """Claim the next due job, or return None when no job is left."""
        while True:
            names = (
                (yield from store.leases.queue_names()) if self._queues is None else self._queues
            )
            lanes = [Lane(name, priority) for priority in PRIORITIES for name in names]
            claims = yield from store.leases.claim(lanes, count=1, worker=WORKER, ttl=LONGEST_LEASE)
            if claims.jobs:
                return claims
            due, now = yield from store.leases.next_due(lanes)
            if due is None or due > self._began + self._ahead:
                return None
            self._passed += due - now

    def note(self, ran: RunRecord) -> None:
        """Record an attempt, and raise its error if errors should end the drain."""
        self.ran.append(ran)
        if ran.error is not None and (self._raise_errors or not isinstance(ran.error, Exception)):
            raise ran.error
        if len(self.ran) > self._limit:
            [(task, times)] = Counter(record.job.task for record in self.ran).most_common(1)
            raise InvalidValue(
                f"drain must end within {self._limit} attempts, got more ({times} of {task}); fix "
                "a job that enqueues itself forever, or pass a larger limit"
            )
