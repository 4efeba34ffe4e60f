"""A store whose time is passed in, and sessions that perform an operation step by step, so that
several can be interleaved and any can be left at any point."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tenure._model.audit import By
from tenure._model.job import NewJob
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore
from tenure._store.steps import Single

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tenure._model.schedule import FireResult
    from tenure._store.steps import Op, Step

T = TypeVar("T")
BY = By("proof")
# A queue without workers: jobs pile up.
QUEUE = "piled"
JOB = NewJob("noop", QUEUE)


class Clock:
    """The time that statements are told."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> datetime:
        self.now += by
        return self.now


class Scheduler(Session):
    """One scheduler's session, with the time as it was when its operation began."""

    def __init__(self, url: str, clock: Clock) -> None:
        connection = connect(url, name="scheduler")
        super().__init__(connection)
        self.connection = connection
        self.store = PostgresStore(clock=lambda: self._began_at)
        self._clock = clock
        self._began_at = clock.now
        self._op: Op[FireResult] | None = None
        self._step: Step | None = None

    @property
    def at_it(self) -> bool:
        """Whether it is in the middle of a firing."""
        return self._op is not None

    def fire(self, count: int) -> FireResult:
        """A whole pass."""
        return self.run(self.store.ticks.fire(count=count))

    def run(self, op: Op[T]) -> T:
        """An operation of this store, at the time that it is now."""
        self._began_at = self._clock.now
        return super().run(op)

    def begin(self, count: int) -> None:
        """Begin a pass; nothing is performed yet."""
        self._began_at = self._clock.now
        self._op = self.store.ticks.fire(count=count)
        self._step = next(self._op)

    def advance(self) -> FireResult | None:
        """Perform one step; the answer, if it was the last."""
        assert self._op is not None
        assert self._step is not None
        try:
            self._step = self._op.send(self._perform(self._step))
        except StopIteration as stop:
            self._op = None
            answer: FireResult = stop.value
            return answer
        return None

    def send(self) -> None:
        """Send the next step without waiting for its answer."""
        assert isinstance(self._step, Single)
        text, arguments = self._text(self._step)
        values = [None if value is None else value.encode() for value in arguments or ()]
        self.connection.pgconn.send_query_params(text, values)
        self.connection.pgconn.flush()

    def finish(self) -> None:
        """Perform what is left of the pass."""
        while self.at_it:
            self.advance()

    def abandon(self) -> None:
        """Be gone in the middle of it: the connection is closed, nothing is rolled back by us."""
        self._op = None
        self.connection.close()


def fire_all(scheduler: Scheduler, clock: Clock, count: int) -> int:
    """Pass after pass until nothing is due; how many passes it took."""
    passes = 0
    while True:
        passes += 1
        answer = scheduler.fire(count)
        if answer.next_at is None or answer.next_at > clock.now:
            return passes
