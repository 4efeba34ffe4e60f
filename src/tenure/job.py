"""The handle of a running job: what a handler can ask and report. `Job` in a `def`, `AsyncJob`
in an `async def`. Who runs the handler, and how it is stopped, is the worker's business.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from tenure._clock import boottime
from tenure._model.ids import JobId, Json, WorkerId
from tenure._model.job import JobRow, NewJob, fields
from tenure._model.lease import Lease, ProgressResult
from tenure._model.outcome import Finished, Settlement, Snooze, Succeeded, TargetReached
from tenure._rules import idempotency, lifecycle, payload, sanitize, serialization
from tenure._store.engine import Engine
from tenure._store.steps import Op
from tenure.errors import InvalidValue, LeaseLost

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection
    from psycopg.rows import TupleRow


_CONFLICTS = frozenset({"40001", "40P01"})
_AFTER_A_CONFLICT = timedelta(seconds=1)


class Enqueueable(Protocol):
    """A call that is ready to be enqueued: what a task's `bind` returns."""

    def apply_middleware(self) -> NewJob:
        """The job that it asks for, as the middleware around enqueue wants it."""


def ignore_extension(asked_at: float) -> None:
    """What an extended lease is to somebody who keeps none."""


class LeaseState:
    """How a running period stands: written by the worker's services and by the handle alike."""

    __slots__ = (
        "cancel_requested",
        "completed_in_caller_transaction",
        "connection",
        "extended",
        "follow_ups",
        "interrupt",
        "lease",
        "log",
        "lost",
        "settled",
    )  # fmt: skip

    def __init__(
        self, lease: Lease, *, extended: Callable[[float], None] = ignore_extension
    ) -> None:
        self.lease: Lease = lease
        self.extended: Callable[[float], None] = extended
        self.cancel_requested: bool = False
        self.lost: bool = False
        self.settled: bool = False
        self.completed_in_caller_transaction: bool = False
        self.follow_ups: list[NewJob] = []
        self.connection: Any = None
        self.log: Callable[[], str | None] = lambda: None
        # Raises `Stopped` if the handler's thread is to stop.
        self.interrupt: Callable[[], None] | None = None

    def check(self, job_id: JobId) -> None:
        """LeaseLost once nothing more may be done in the lease's name; Stopped if the handler is to
        stop for another reason."""
        if self.lost:
            raise LeaseLost(f"job {job_id}: the lease is lost; stop")
        if self.interrupt is not None:
            self.interrupt()
        if self.settled or self.completed_in_caller_transaction:
            raise InvalidValue(
                f"job {job_id} was already completed in a transaction; nothing can follow it"
            )


class _Handle:
    """What both handles share: what is known without asking the database."""

    def __init__(self, row: JobRow, grip: LeaseState, engine: Engine) -> None:
        self._row = row
        self._grip = grip
        self._engine = engine
        self._store = engine.store
        self._cursor = row.cursor

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.task} attempt {self.attempt}>"

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self._row.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._row.task

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._row.queue

    @property
    def created_at(self) -> datetime:
        """When it was enqueued."""
        return self._row.created_at

    @property
    def worker(self) -> WorkerId:
        """The id of the worker that runs it."""
        return self._grip.lease.claimed_by

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1 on."""
        return self._row.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts there are."""
        return self._row.max_attempts

    @property
    def deaths(self) -> int:
        """How often the job was lost before with a process or a worker; no attempt is charged."""
        return self._row.deaths

    @property
    def key(self) -> str | None:
        """The key that makes the job unique within its task, if it has one."""
        return self._row.key

    @property
    def idempotency_key(self) -> str:
        """A key for other systems that is the same in every attempt of this job, and no other
        job's: of this database or another."""
        return idempotency.key(self._engine.schema, self._row)

    @property
    def fence(self) -> int:
        """A number that is higher in every later running period: what a careful system compares."""
        return self._row.token

    @property
    def cursor(self) -> Json:
        """Where the last report left off, in this attempt or one before; None at the start."""
        return self._cursor

    @property
    def tags(self) -> list[str]:
        """The tags given at enqueue."""
        meta = self._row.meta or {}
        return list(meta.get("tags", ()))

    @property
    def meta(self) -> dict[str, Json]:
        """What middleware noted with the job when it was enqueued."""
        return dict(fields(self._row.meta))

    @property
    def schedule(self) -> str | None:
        """The schedule that the job comes from; None if it was enqueued."""
        name: str | None = (self._row.meta or {}).get("schedule")
        return name

    @property
    def tick_at(self) -> datetime | None:
        """The tick of its schedule that the job is for, in UTC: when it was meant to run, however
        late it does. None without one, also where an operator ran the schedule by hand."""
        at: str | None = (self._row.meta or {}).get("tick_at")
        return None if at is None else datetime.fromisoformat(at).astimezone(UTC)

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for this job to be cancelled. Ending in any way but by a result
        then ends it as cancelled."""
        return self._grip.cancel_requested

    def finished(self, reason: str, result: Json = None) -> Finished:
        """To be returned: the result with the reason why there is no more to do."""
        return Finished(reason, result)

    def enqueue(self, *calls: Enqueueable) -> None:
        """Enqueue calls (`task.bind(…)`) together with this job's completion: both or neither."""
        self._grip.check(self.id)
        for call in calls:
            job = call.apply_middleware()
            payload.check(job)
            payload.encode(job.args)
            payload.encode(job.meta, what="the meta fields")
            self._grip.follow_ups.append(job)

    def _report(self, counts: Mapping[str, Any]) -> Op[ProgressResult]:
        self._grip.check(self.id)
        return self._store.leases.progress(
            self._grip.lease, **counts, also=self._grip.follow_ups, log=self._grip.log()
        )

    def _reported(self, reported: ProgressResult, asked_at: float, cursor: Json) -> int:
        self._grip.extended(asked_at)
        self._grip.cancel_requested |= reported.cancel_requested
        if cursor is not None:
            self._cursor = cursor
        if reported.reached:
            self._grip.settled = True
            raise TargetReached
        return reported.items

    def _completion(self, result: Json, reason: str) -> Op[None]:
        """The last statements of the transaction that completes the job."""
        settlement = completed(Succeeded(sanitize.result(serialization.dump(result)), reason))
        return self._store.settlement.settle_within(
            self._grip.lease, settlement, also=self._grip.follow_ups, log=self._grip.log()
        )


class Job(_Handle):
    """The handle in a `def` handler."""

    def progress(
        self,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
    ) -> int:
        """Report, and extend the lease; answers how many distinct items are known so far.

        The report that reaches the job's target completes the job and ends the handler.
        """
        asked_at = boottime()
        counts = {"items": items, "done": done, "total": total, "message": message}
        try:
            reported = self._engine.run(self._report({"cursor": cursor, **counts}))
        except LeaseLost:
            self._grip.lost = True
            raise
        return self._reported(reported, asked_at, cursor)

    @contextmanager
    def transaction(self) -> Iterator["Connection[TupleRow]"]:
        """A transaction that completes the job: what is written through it happens exactly once.

        The lease is checked first and settled last, in one COMMIT; if it was lost meanwhile,
        LeaseLost, and everything is rolled back. A deadlock or a serialization failure runs
        the job again, uncharged.
        """
        self._grip.check(self.id)
        with _uncharged_conflicts(), self._engine.transaction() as connection:
            runner = self._engine.on(connection)
            runner.run(self._store.settlement.check(self._grip.lease))
            self._grip.connection = connection
            try:
                yield connection
                if not self._grip.completed_in_caller_transaction:
                    runner.run(self._completion(None, "worker_done"))
                    self._grip.completed_in_caller_transaction = True
            finally:
                self._grip.connection = None
        self._grip.settled = True

    def complete(
        self, *, connection: Any, result: Json = None, reason: str = "worker_done"
    ) -> None:
        """Complete the job as the last statements of a transaction of your own; LeaseLost if the
        lease is lost: roll back."""
        self._grip.check(self.id)
        self._engine.on(connection).run(self._completion(result, reason))
        self._grip.completed_in_caller_transaction = True

    def guard(self, *, connection: Any) -> None:
        """Fence a transaction of your own without completing the job: called last, before your
        COMMIT; LeaseLost if the lease is lost: roll back."""
        self._grip.check(self.id)
        self._engine.on(connection).run(self._store.leases.guard(self._grip.lease))


class AsyncJob(_Handle):
    """The handle in an `async def` handler."""

    async def progress(
        self,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
    ) -> int:
        """Report, and extend the lease; answers how many distinct items are known so far.

        The report that reaches the job's target completes the job and ends the handler.
        """
        asked_at = boottime()
        counts = {"items": items, "done": done, "total": total, "message": message}
        try:
            reported = await self._engine.arun(self._report({"cursor": cursor, **counts}))
        except LeaseLost:
            self._grip.lost = True
            raise
        return self._reported(reported, asked_at, cursor)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["AsyncConnection[TupleRow]"]:
        """A transaction that completes the job: what is written through it happens exactly once.

        The lease is checked first and settled last, in one COMMIT; if it was lost meanwhile,
        LeaseLost, and everything is rolled back. A deadlock or a serialization failure runs
        the job again, uncharged.
        """
        self._grip.check(self.id)
        with _uncharged_conflicts():
            async with self._engine.atransaction() as connection:
                runner = self._engine.aon(connection)
                await runner.run(self._store.settlement.check(self._grip.lease))
                yield connection
                if not self._grip.completed_in_caller_transaction:
                    await runner.run(self._completion(None, "worker_done"))
                    self._grip.completed_in_caller_transaction = True
        self._grip.settled = True

    async def complete(
        self, *, connection: Any, result: Json = None, reason: str = "worker_done"
    ) -> None:
        """Complete the job as the last statements of a transaction of your own; LeaseLost if the
        lease is lost: roll back."""
        self._grip.check(self.id)
        await self._engine.aon(connection).run(self._completion(result, reason))
        self._grip.completed_in_caller_transaction = True

    async def guard(self, *, connection: Any) -> None:
        """Fence a transaction of your own without completing the job: called last, before your
        COMMIT; LeaseLost if the lease is lost: roll back."""
        self._grip.check(self.id)
        await self._engine.aon(connection).run(self._store.leases.guard(self._grip.lease))


def completed(outcome: Succeeded) -> Settlement:
    """The settlement of a success; attempts and backoff do not enter into it."""
    return lifecycle.settle(outcome, attempt=1, limit=1, backoff=timedelta(0))


@contextmanager
def _uncharged_conflicts() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if getattr(error, "sqlstate", None) in _CONFLICTS:
            raise Snooze(_AFTER_A_CONFLICT) from error
        raise


CURRENT: ContextVar[Job | AsyncJob] = ContextVar("tenure_job")


def current_job() -> Job | AsyncJob:
    """The handle of the job that this code runs in, for code further down."""
    try:
        return CURRENT.get()
    except LookupError:
        raise InvalidValue("no job is running here; call this from a handler") from None
