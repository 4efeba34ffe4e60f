"""`inline`: run each job immediately, where it is enqueued."""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from datetime import timedelta
from typing import Any, TypeVar, cast

from tenure._model.ids import JobId
from tenure._model.job import EnqueueResult, JobRow, NewJob, State, UniformBatch
from tenure._model.lease import ClaimResult, Lease, ProgressResult
from tenure._model.outcome import Released, Settlement, SettleRequest
from tenure._model.queue import Floor, Lane
from tenure._rules import lifecycle
from tenure._store.engine import AsyncRunner, Engine, Runner
from tenure._store.port import JobStore, LeaseStore, SettlementStore, Store
from tenure._store.steps import Op, atomically
from tenure.app import Tenure
from tenure.config import LONGEST_LEASE
from tenure.testing.engines import EngineProxy, OverConnection
from tenure.testing.runner import WORKER, JobRunner

T = TypeVar("T")
_GIVEN_BACK = lifecycle.settle(Released(), attempt=1, limit=1, backoff=timedelta(0))


@contextmanager
def inline(app: Tenure) -> Iterator[None]:
    """Run every job enqueued inside the block immediately.

    Each job is really stored, claimed and completed. The handler has a lease, and its arguments and
    result are converted to JSON and back. If a handler fails, the enqueue raises its error. Delayed
    jobs are stored but don't run.

    Args:
        app: The app.
    """
    with app.with_engine(cast("Engine", _Inline(app, app.engine))):
        yield


class _RecordingStore(Store):
    """A store that records which jobs were enqueued, including follow-ups."""

    def __init__(self, inner: Store, noted: list[JobId]) -> None:
        parts: dict[str, Any] = {part.name: getattr(inner, part.name) for part in fields(Store)}
        jobs = _RecordingJobs(inner.jobs, noted)
        parts["jobs"] = jobs
        parts["settlement"] = _RecordingSettlement(inner.settlement, jobs)
        parts["leases"] = _RecordingLeases(inner.leases, jobs)
        super().__init__(**parts)


class _RecordingPart:
    """Forward everything to another part of a store, except what a subclass overrides."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _RecordingJobs(_RecordingPart):
    def __init__(self, inner: JobStore, noted: list[JobId]) -> None:
        super().__init__(inner)
        self._noted = noted

    def enqueue(self, jobs: Sequence[NewJob], *, wake: bool = True) -> Op[Sequence[EnqueueResult]]:
        """Enqueue, and record the new jobs."""
        answers: Sequence[EnqueueResult] = yield from self._inner.enqueue(jobs, wake=wake)
        self._noted.extend(answer.id for answer in answers if answer.created)
        return answers

    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]:
        """Enqueue batches in a pipeline, and record the new jobs."""
        answers: Sequence[EnqueueResult] = yield from self._inner.enqueue_pipelined(batches)
        self._noted.extend(answer.id for answer in answers)
        return answers


class _RecordingSettlement(_RecordingPart):
    def __init__(self, inner: SettlementStore, jobs: _RecordingJobs) -> None:
        super().__init__(inner)
        self._jobs = jobs

    def settle_within(
        self, lease: Lease, settlement: Settlement, *, also: Sequence[NewJob] = (), **how: Any
    ) -> Op[None]:
        """Settle, and record the follow-ups."""
        yield from self._inner.settle_within(lease, settlement, **how)
        if also:
            yield from self._jobs.enqueue(also)


class _RecordingLeases(_RecordingPart):
    def __init__(self, inner: LeaseStore, jobs: _RecordingJobs) -> None:
        super().__init__(inner)
        self._jobs = jobs

    def progress(
        self, lease: Lease, *, also: Sequence[NewJob] = (), **report: Any
    ) -> Op[ProgressResult]:
        """Report, and record the follow-ups if the report completes the job."""
        return (yield from atomically(self._progress(lease, also, report)))

    def _progress(
        self, lease: Lease, also: Sequence[NewJob], report: Mapping[str, Any]
    ) -> Op[ProgressResult]:
        reported: ProgressResult = yield from self._inner.progress(lease, **report)
        if reported.reached and also:
            yield from self._jobs.enqueue(also)
        return reported


class _Inline(EngineProxy):
    """An engine that runs newly enqueued jobs after each operation."""

    def __init__(self, app: Tenure, inner: Engine, noted: list[JobId] | None = None) -> None:
        super().__init__(inner)
        self._app = app
        self._noted: list[JobId] = [] if noted is None else noted
        self._store = _RecordingStore(inner.store, self._noted)
        self._own: list[Any] = []

    @property
    def store(self) -> Store:
        """The store, which records the jobs that it enqueues."""
        return self._store

    def run(self, op: Op[T], connection: Any = None) -> T:
        """Run an operation, then the jobs it enqueued."""
        if connection is not None:
            return self.on(connection).run(op)
        with self._noting() as noted:
            answer = self.inner.run(op)
        self._run(noted)
        return answer

    async def arun(self, op: Op[T], connection: Any = None) -> T:
        if connection is not None:
            return await self.aon(connection).run(op)
        with self._noting() as noted:
            answer = await self.inner.arun(op)
        await self._arun(noted)
        return answer

    def on(self, connection: Any) -> Runner:
        """Return a runner that uses the caller's connection.

        Jobs enqueued in the caller's transaction run inside it, before it commits. Jobs enqueued in
        a handler's own transaction run after that transaction.
        """
        if any(own is connection for own in self._own):
            return self.inner.on(connection)
        return _Over(self._over(connection, is_async=False))

    def aon(self, connection: Any) -> AsyncRunner:
        if any(own is connection for own in self._own):
            return self.inner.aon(connection)
        return _AsyncOver(self._over(connection, is_async=True))

    def _over(self, connection: Any, *, is_async: bool) -> "_Inline":
        over = OverConnection(self.inner, connection, is_async=is_async)
        return _Inline(self._app, cast("Engine", over), self._noted)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Open a handler's transaction. Jobs that it enqueues run after it commits."""
        with self._noting() as noted, self.inner.transaction() as connection:
            self._own.append(connection)
            try:
                yield connection
            finally:
                self._own.remove(connection)
        self._run(noted)

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        with self._noting() as noted:
            async with self.inner.atransaction() as connection:
                self._own.append(connection)
                try:
                    yield connection
                finally:
                    self._own.remove(connection)
        await self._arun(noted)

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002 - see below
        """Return the job immediately. If it hasn't run yet, it is delayed and won't run here."""
        return self.inner.run(self.store.jobs.get(job_id))

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002, ASYNC109 - as above
        return await self.inner.arun(self.store.jobs.get(job_id))

    @contextmanager
    def _noting(self) -> Iterator[deque[JobId]]:
        """Yield a queue that receives the jobs enqueued inside the block when the block ends.

        After an error, the queue stays empty, because the jobs were rolled back.
        """
        before = len(self._noted)
        noted: deque[JobId] = deque()
        try:
            yield noted
            noted.extend(self._noted[before:])
        finally:
            del self._noted[before:]

    def _run(self, jobs: deque[JobId]) -> None:
        """Run jobs, then the jobs they enqueue."""
        while jobs:
            claims = self.inner.run(_claim(self.inner.store, jobs.popleft()))
            if claims is None:
                continue
            with self._noting() as noted, self._app.with_engine(cast("Engine", self)):
                ran = JobRunner(self._app, settle_by=self.inner, is_async=False).run(claims)
            jobs.extend(noted)
            if ran.error is not None:
                raise ran.error

    async def _arun(self, jobs: deque[JobId]) -> None:
        while jobs:
            claims = await self.inner.arun(_claim(self.inner.store, jobs.popleft()))
            if claims is None:
                continue
            with self._noting() as noted, self._app.with_engine(cast("Engine", self)):
                ran = await JobRunner(self._app, settle_by=self.inner, is_async=True).arun(claims)
            jobs.extend(noted)
            if ran.error is not None:
                raise ran.error


class _Over:
    """A runner over the caller's connection."""

    def __init__(self, engine: _Inline) -> None:
        self._engine = engine

    def run(self, op: Op[T]) -> T:
        return self._engine.run(op)


class _AsyncOver:
    def __init__(self, engine: _Inline) -> None:
        self._engine = engine

    async def run(self, op: Op[T]) -> T:
        return await self._engine.arun(op)


def _claim(store: Store, job_id: JobId) -> Op[ClaimResult | None]:
    """Claim one job. Return None if it isn't due, is held, or is in a paused queue."""
    row = yield from store.jobs.get(job_id)
    if row is None or row.state is not State.QUEUED:
        return None
    # The job comes first after this position, unless other jobs were released.
    lane = Lane(row.queue, row.priority, Floor(row.run_at, JobId(job_id - 1)))
    others: list[SettleRequest] = []
    own_claim: ClaimResult | None = None
    while own_claim is None:
        claims = yield from store.leases.claim([lane], count=1, worker=WORKER, ttl=LONGEST_LEASE)
        if not claims.jobs:
            break
        [claimed] = claims.jobs
        if claimed.job.id == job_id:
            own_claim = claims
        else:
            others.append(SettleRequest(claimed.lease, _GIVEN_BACK))
    if others:
        yield from store.settlement.settle(others)
    return own_claim
