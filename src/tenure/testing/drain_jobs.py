"""`drain`: run what is due, one job after the other, here, until nothing is left."""

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
    """The attempts that a drain has run, in their order."""

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
        return self._count("completed")

    @property
    def failed(self) -> int:
        """How many failed for good: their jobs are dead letters."""
        return self._count("failed")

    @property
    def retrying(self) -> int:
        """How many failed, and are to be tried again."""
        return self._count("retrying")

    @property
    def snoozed(self) -> int:
        """How many asked to go on later."""
        return self._count("snoozed")

    @property
    def cancelled(self) -> int:
        """How many ended as cancelled, or came past their `expires_in`."""
        return self._count("cancelled")

    @property
    def errors(self) -> Sequence[BaseException]:
        """What handlers raised when they failed."""
        return [record.error for record in self.ran if record.error is not None]


def drain(
    app: Tenure,
    *,
    queues: Sequence[str] | None = None,
    fast_forward: Seconds = 0,
    raise_errors: bool = True,
    limit: int = 1000,
) -> Drained:
    """Run what is due in these queues, or in all, until nothing is left, also what that enqueues.

    `ahead` lets so much time pass, without waiting: what is delayed, snoozed or to be tried again
    within it runs too, each at its time. A handler that fails ends the drain with its own error,
    after its job is settled, unless `raise_errors` is false. More than `limit` attempts are taken
    for a job that enqueues itself for ever.
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
    """The same in the async world: `async def` handlers run on this loop, the others in threads."""
    course = _DrainRun(queues, duration(fast_forward), raise_errors=raise_errors, limit=limit)
    await app.engine.arun(course.begin(app.engine.store))
    with app.with_engine(course.engine(app.engine)):
        engine, bench = app.engine, JobRunner(app, is_async=True)
        while (claims := await engine.arun(course.claim(engine.store))) is not None:
            course.note(await bench.arun(claims))
    return Drained(course.ran)


class _DrainRun:
    """One drain: which lanes it reads, and by which time."""

    def __init__(
        self, queues: Sequence[str] | None, ahead: timedelta, *, raise_errors: bool, limit: int
    ) -> None:
        if not timedelta(0) <= ahead <= LONGEST_WAIT:
            raise InvalidValue(f"ahead is {ahead}; time passes forwards, for at most 100 years")
        self._queues = None if queues is None else require_sequence(queues, "queues")
        self._ahead = ahead
        self._raise_errors = raise_errors
        self._limit = limit
        self._began = datetime.now(UTC)
        self._asked = monotonic()
        self._passed = timedelta(0)
        self.ran: list[RunRecord] = []

    def engine(self, engine: Engine) -> Engine:
        """The engine to run by: the database's own time, unless more of it is to pass."""
        return cast("Engine", ClockedEngine(engine, self._now)) if self._ahead else engine

    def begin(self, store: Store) -> Op[None]:
        """Learn what time it is where the jobs are."""
        _, self._began = yield from store.leases.next_due([])
        self._asked = monotonic()

    def _now(self) -> datetime:
        return self._began + timedelta(seconds=monotonic() - self._asked) + self._passed

    def claim(self, store: Store) -> Op[ClaimResult | None]:
        """The next job, once it is due; None when nothing is left."""
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
        """Keep what became of a job; a failure ends the drain, unless it is only to be told."""
        self.ran.append(ran)
        if ran.error is not None and (self._raise_errors or not isinstance(ran.error, Exception)):
            raise ran.error
        if len(self.ran) > self._limit:
            [(task, times)] = Counter(record.job.task for record in self.ran).most_common(1)
            raise InvalidValue(
                f"{self._limit} attempts were run, {times} of them of {task}, and it goes on; if "
                "that is no job that enqueues itself for ever, give drain a larger limit"
            )
