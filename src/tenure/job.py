"""The running job inside its handler: `Job` in a `def`, `AsyncJob` in an `async def`.

This file is longer than 500 lines because both classes document every argument, so that an editor
can show them for either one.
"""

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from tenure._clock import boottime
from tenure._model.ids import JobId, Json, WorkerId
from tenure._model.job import JobRow, NewJob, fields
from tenure._model.lease import Lease, ProgressResult
from tenure._model.outcome import (
    FinalReport,
    Finished,
    Settlement,
    SettleRequest,
    Snooze,
    Succeeded,
    TargetReached,
)
from tenure._rules import idempotency, lifecycle, payload, sanitize, serialization
from tenure._rules.leasing import read_extension
from tenure._store.engine import Engine
from tenure._store.steps import Op
from tenure.errors import InvalidValue, LeaseLost

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection
    from psycopg.rows import TupleRow


_CONFLICTS = frozenset({"40001", "40P01"})
_AFTER_A_CONFLICT = timedelta(seconds=1)


class Enqueueable(Protocol):
    """A call that `task.bind` returns, ready to enqueue."""

    def apply_middleware(self) -> NewJob:
        """Return the job after running the enqueue middleware."""


OnExtended = Callable[[float, timedelta | None], None]


def ignore_extension(sent_at: float, extend: timedelta | None) -> None:
    """Do nothing: the default callback for an extended lease."""


def do_nothing() -> None:
    """Do nothing: the default check for a stop."""


def _no_log() -> str | None:
    return None


def _ignore_output(text: str) -> None:
    """Do nothing: the default without a log."""


class LeaseState:
    """One lease's state, updated by the worker's services and by the job's handle."""

    __slots__ = (
        "cancel_requested",
        "completed_in_caller_transaction",
        "connection",
        "extended",
        "follow_ups",
        "follower",
        "interrupt",
        "interrupt_here",
        "lease",
        "log",
        "lost",
        "settled",
        "show_output",
        "stop_within",
        "timeout_at",
        "trusted_until",
    )  # fmt: skip

    def __init__(self, lease: Lease, *, extended: OnExtended = ignore_extension) -> None:
        self.lease: Lease = lease
        self.extended: OnExtended = extended
        self.cancel_requested: bool = False
        self.lost: bool = False
        self.settled: bool = False
        self.completed_in_caller_transaction: bool = False
        # When the attempt times out, by `boottime`.
        self.timeout_at: float = math.inf
        self.follow_ups: list[NewJob] = []
        self.connection: Any = None
        self.log: Callable[[], str | None] = _no_log
        # Puts a command's output at the end of the log, instead of what it put there before.
        self.show_output: Callable[[str], None] = _ignore_output
        # When the handler must begin to stop, by the boot-time clock, and how long that may take.
        self.trusted_until: float = math.inf
        self.stop_within: float = 0.0
        # Called from any thread with the new `trusted_until`, for what runs outside this process.
        self.follower: Callable[[float], None] | None = None
        # Raises `Stopped` if the handler's thread should stop.
        self.interrupt: Callable[[], None] | None = None
        # The same, for places that release what they hold: it ignores the handler's stack.
        self.interrupt_here: Callable[[], None] = do_nothing

    @contextmanager
    def followed_by(self, follow: Callable[[float], None]) -> Iterator[None]:
        """Inside the block, pass each new `trusted_until` on, first of all the current one."""
        # First the callback: a renewal in between is reported twice rather than never.
        self.follower = follow
        try:
            follow(self.trusted_until)
            yield
        finally:
            self.follower = None

    def check(self, job_id: JobId) -> None:
        """Raise LeaseLost if the lease is lost, or Stopped if the handler must stop."""
        if self.lost:
            raise LeaseLost(f"job {job_id}: the lease is lost, stop the handler")
        if self.interrupt is not None:
            self.interrupt()
        if self.settled or self.completed_in_caller_transaction:
            raise InvalidValue(
                f"job {job_id} is already completed by a transaction; call nothing on it afterwards"
            )


class _Handle:
    """The base class of `Job` and `AsyncJob`, with everything that doesn't need a query."""

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
        """The job's queue."""
        return self._row.queue

    @property
    def created_at(self) -> datetime:
        """When the job was enqueued."""
        return self._row.created_at

    @property
    def worker(self) -> WorkerId:
        """The id of the worker running the job."""
        return self._grip.lease.claimed_by

    @property
    def attempt(self) -> int:
        """This attempt's number, starting at 1."""
        return self._row.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has."""
        return self._row.max_attempts

    @property
    def deaths(self) -> int:
        """How many times a process or worker died running the job. Deaths don't use up attempts."""
        return self._row.deaths

    @property
    def key(self) -> str | None:
        """The job's deduplication key, or None."""
        return self._row.key

    @property
    def idempotency_key(self) -> str:
        """A key for other systems, unique to this job and the same in every attempt.

        It is unique across databases too.
        """
        return idempotency.key(self._engine.schema, self._row)

    @property
    def fence(self) -> int:
        """The fencing token, which increases each time the job is claimed.

        Other systems can compare it to reject stale writes.
        """
        return self._row.token

    @property
    def cursor(self) -> Json:
        """The last cursor that any attempt reported, or None."""
        return self._cursor

    @property
    def tags(self) -> list[str]:
        """The tags given at enqueue."""
        meta = self._row.meta or {}
        return list(meta.get("tags", ()))

    @property
    def meta(self) -> dict[str, Json]:
        """The `meta` fields that middleware stored at enqueue."""
        return dict(fields(self._row.meta))

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that created the job, or None."""
        name: str | None = (self._row.meta or {}).get("schedule")
        return name

    @property
    def tick_at(self) -> datetime | None:
        """The scheduled time (UTC) of the run that created this job, even if the job runs late.

        This is `None` if the job has no schedule, or if an operator ran the schedule manually.
        """
        at: str | None = (self._row.meta or {}).get("tick_at")
        return None if at is None else datetime.fromisoformat(at).astimezone(UTC)

    @property
    def cancel_requested(self) -> bool:
        """Whether cancellation was requested, as of the last progress report or lease renewal.

        If so, the job ends as `cancelled`, unless the handler still returns a result.
        """
        return self._grip.cancel_requested

    @property
    def time_left(self) -> timedelta | None:
        """How long this attempt may still run before its timeout, or None without a limit.

        Pass it on as the deadline of a request to another system.
        """
        if math.isinf(self._grip.timeout_at):
            return None
        return timedelta(seconds=max(self._grip.timeout_at - boottime(), 0.0))

    def finished(
        self,
        reason: str,
        result: Json = None,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
    ) -> Finished:
        """Complete the job with your own reason, by returning this from the handler.

        Args:
            reason: Why the job is done, stored as `done_reason`.
            result: The job's result.
            cursor: The last cursor.
            items: The last result rows by key. They are stored in the transaction that completes
                the job. A repeated key counts once.

        Returns:
            The value to return from the handler.

        Raises:
            InvalidValue: An item's key is not a text of 1 to 400 characters.
            PayloadError: The cursor or an item is not JSON, or is too large.
        """
        payload.check_report(cursor, items)
        report = None if cursor is None and not items else FinalReport(cursor, items)
        return Finished(reason, result, report)

    def enqueue(self, *calls: Enqueueable) -> None:
        """Enqueue other jobs when this job completes, in the same transaction.

        Args:
            *calls: Calls made with `task.bind(…)`.

        Raises:
            LeaseLost: The lease is lost.
            PayloadError: Arguments are not JSON, or are too large.
        """
        self._grip.check(self.id)
        for call in calls:
            [job] = self._engine.sealing.jobs([call.apply_middleware()])
            payload.check(job)
            payload.encode(job.args)
            payload.encode(job.meta, what="the meta fields")
            self._grip.follow_ups.append(job)

    def _report(self, counts: Mapping[str, Any]) -> Op[ProgressResult]:
        self._grip.check(self.id)
        report = self._engine.sealing.report({**counts, "log": self._grip.log()}, task=self.task)
        return self._store.leases.progress(self._grip.lease, **report, also=self._grip.follow_ups)

    def _reported(
        self,
        reported: ProgressResult,
        sent_at: float,
        cursor: Json,
        extend: timedelta | None,
    ) -> int:
        self._grip.extended(sent_at, extend)
        self._grip.cancel_requested |= reported.cancel_requested
        if cursor is not None:
            self._cursor = cursor
        if reported.reached:
            self._grip.settled = True
            raise TargetReached
        return reported.items

    def _completion(self, result: Json, reason: str) -> Op[None]:
        """Return the final statements of the transaction that completes the job."""
        settlement = completed(Succeeded(sanitize.result(serialization.dump(result)), reason))
        ended = SettleRequest(self._grip.lease, settlement, self._grip.log())
        ended = self._engine.sealing.ending(ended, task=self.task)
        return self._store.settlement.settle_within(
            ended.lease, ended.settlement, also=self._grip.follow_ups, log=ended.log
        )


def lease_state_of(job: "Job | AsyncJob") -> LeaseState:
    """Return the state of a running job's lease, for the built-in kinds of work."""
    return job._grip  # noqa: SLF001 - users' code doesn't see it


class Job(_Handle):
    """The running job in a `def` handler.

    To receive it, annotate the handler's first parameter with `Job`.

    Example::

        from tenure import Job, Tenure

        app = Tenure()

        @app.task
        def crawl(job: Job, pages: int) -> str:
            for page in range(job.cursor or 0, pages):
                job.progress(cursor=page + 1, done=page + 1, total=pages)
            return f"{pages} pages"

        crawl.enqueue(pages=3)
    """

    def progress(
        self,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        extend: float | timedelta | None = None,
    ) -> int:
        """Report progress and extend the lease.

        A report that reaches the job's `target` completes the job and ends the handler.

        Args:
            cursor: JSON to resume from. A later attempt reads it as `job.cursor`.
            items: Result rows by key. A repeated key counts once.
            done: How much is done.
            total: How much there is to do.
            message: A short message for people.
            extend: How long the lease lasts from now on, at most a day (default: the lease's own
                length). Renewals don't shorten it.

        Returns:
            How many distinct items the job has reported so far.

        Raises:
            InvalidValue: `extend` is not positive, or longer than a day.
            LeaseLost: The lease is lost. Let this exception end the handler.
        """
        longer = read_extension(extend)
        sent_at = boottime()
        counts = {"done": done, "total": total, "message": message, "extend": longer}
        try:
            reported = self._engine.run(self._report({"cursor": cursor, "items": items, **counts}))
        except LeaseLost:
            self._grip.lost = True
            raise
        return self._reported(reported, sent_at, cursor, longer)

    @contextmanager
    def transaction(self) -> Iterator["Connection[TupleRow]"]:
        """Open a transaction that completes the job when the block ends.

        Everything written through the connection takes effect exactly once. The transaction checks
        the lease first and completes the job last, in one COMMIT. After a deadlock or serialization
        failure, the job reruns after 1 s without using up an attempt. The job has no result unless
        you call `complete(connection=…, result=…)` as the block's last step.

        Returns:
            A context manager that yields a psycopg connection.

        Raises:
            LeaseLost: The lease is lost. The transaction is rolled back.
        """
        self._grip.check(self.id)
        with _uncharged_conflicts(), self._engine.transaction() as connection:
            runner = self._engine.on(connection)
            runner.run(self._store.settlement.check(self._grip.lease))
            # A stop shuts this connection down, or it came before this line and is raised here.
            self._grip.connection = connection
            try:
                self._grip.interrupt_here()
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
        """Complete the job inside your own transaction.

        Call it last, then commit. The transaction must be READ COMMITTED. If you don't commit, the
        attempt fails and the job is retried.

        Args:
            connection: Your connection or session with an open transaction.
            result: The job's result.
            reason: Why the job is done, stored as `done_reason`.

        Raises:
            LeaseLost: The lease is lost. Roll back.
        """
        self._grip.check(self.id)
        self._engine.on(connection).run(self._completion(result, reason))
        self._grip.completed_in_caller_transaction = True

    def guard(self, *, connection: Any) -> None:
        """Fence your own transaction without completing the job.

        Call it last, then commit. The transaction must be READ COMMITTED.

        Args:
            connection: Your connection or session with an open transaction.

        Raises:
            LeaseLost: The lease is lost. Roll back.
        """
        self._grip.check(self.id)
        self._engine.on(connection).run(self._store.leases.guard(self._grip.lease))


class AsyncJob(_Handle):
    """The running job in an `async def` handler: `Job` with coroutines."""

    async def progress(
        self,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        extend: float | timedelta | None = None,
    ) -> int:
        """Report progress and extend the lease. Async version of `Job.progress`.

        A report that reaches the job's `target` completes the job and ends the handler.

        Args:
            cursor: JSON to resume from. A later attempt reads it as `job.cursor`.
            items: Result rows by key. A repeated key counts once.
            done: How much is done.
            total: How much there is to do.
            message: A short message for people.
            extend: How long the lease lasts from now on, at most a day (default: the lease's own
                length). Renewals don't shorten it.

        Returns:
            How many distinct items the job has reported so far.

        Raises:
            InvalidValue: `extend` is not positive, or longer than a day.
            LeaseLost: The lease is lost. Let this exception end the handler.
        """
        longer = read_extension(extend)
        sent_at = boottime()
        counts = {"done": done, "total": total, "message": message, "extend": longer}
        try:
            reported = await self._engine.arun(
                self._report({"cursor": cursor, "items": items, **counts})
            )
        except LeaseLost:
            self._grip.lost = True
            raise
        return self._reported(reported, sent_at, cursor, longer)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["AsyncConnection[TupleRow]"]:
        """Open a transaction that completes the job when the block ends.

        Everything written through the connection takes effect exactly once. The transaction checks
        the lease first and completes the job last, in one COMMIT. After a deadlock or serialization
        failure, the job reruns after 1 s without using up an attempt. The job has no result unless
        you call `complete(connection=…, result=…)` as the block's last step.

        Returns:
            A context manager that yields an async psycopg connection.

        Raises:
            LeaseLost: The lease is lost. The transaction is rolled back.
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
        """Complete the job inside your own transaction. Async version of `Job.complete`.

        Call it last, then commit. The transaction must be READ COMMITTED. If you don't commit, the
        attempt fails and the job is retried.

        Args:
            connection: Your connection or session with an open transaction.
            result: The job's result.
            reason: Why the job is done, stored as `done_reason`.

        Raises:
            LeaseLost: The lease is lost. Roll back.
        """
        self._grip.check(self.id)
        await self._engine.aon(connection).run(self._completion(result, reason))
        self._grip.completed_in_caller_transaction = True

    async def guard(self, *, connection: Any) -> None:
        """Fence your own transaction. Async version of `Job.guard`.

        Call it last, then commit. The transaction must be READ COMMITTED.

        Args:
            connection: Your connection or session with an open transaction.

        Raises:
            LeaseLost: The lease is lost. Roll back.
        """
        self._grip.check(self.id)
        await self._engine.aon(connection).run(self._store.leases.guard(self._grip.lease))


def completed(outcome: Succeeded) -> Settlement:
    """Return the settlement for a success, which doesn't depend on attempts or backoff."""
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
    """Return the running job, for code called by the handler.

    It isn't available in threads that the handler starts itself, except through
    `asyncio.to_thread`.

    Returns:
        The running job.

    Raises:
        InvalidValue: No job is running here.
    """
    try:
        return CURRENT.get()
    except LookupError:
        raise InvalidValue(
            "current_job() must be called inside a handler; no job is running here"
        ) from None
