"""The worker protocol: acquire, then renew, progress, complete, fail or release by the lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from tenure.gateway import (
    AcquiredJob,
    AcquireResult,
    Error,
    Failed,
    Released,
    Remote,
    SettleCommand,
    SettleResult,
    SettleStatus,
    Succeeded,
    WorkerInfo,
)
from tenure.server.auth import Worker
from tenure.server.dependencies import read_trace
from tenure.server.problems import ProblemError
from tenure.server.schemas import leases as shapes
from tenure.server.schemas.leases import Again
from tenure.types import Scope

_MILLISECOND = timedelta(milliseconds=1)
router: APIRouter = APIRouter(prefix="/v1", tags=["leases"])


def _remote(request: Request) -> Remote:
    remote: Remote = request.app.state.remote
    return remote


Protocol = Annotated[Remote, Depends(_remote)]


@router.post("/leases:acquire")
async def acquire(
    asked: shapes.AcquireIn, worker: Worker, remote: Protocol, request: Request
) -> shapes.AcquireOut:
    """Jobs to work on, each under a lease of its own; waits until there is one, or the time is
    up. What was acquired for a client that has gone is given back."""
    for queue in asked.queues:
        worker.must(Scope.WORK, queue)
    async with _watched(request) as gone:
        acquired = await remote.acquire(
            worker.holder,
            asked.queues,
            WorkerInfo(**asked.worker.model_dump()),
            session=asked.session,
            count=asked.count,
            holding=asked.holding,
            wait=timedelta(seconds=asked.wait),
            gone=gone,
        )
    if gone.is_set():
        await remote.release(worker.holder, acquired)
        acquired = AcquireResult(acquired.session, [])
    return _acquired(acquired)


@asynccontextmanager
async def _watched(request: Request) -> AsyncIterator[asyncio.Event]:
    """An event that happens when whoever sent the request has gone."""
    gone = asyncio.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.create_task(watch())
    try:
        yield gone
    finally:
        watching.cancel()


def _acquired(acquired: AcquireResult) -> shapes.AcquireOut:
    return shapes.AcquireOut(
        session=acquired.session,
        waited_ms=acquired.waited // _MILLISECOND,
        jobs=[_work(work) for work in acquired.work],
        draining=acquired.draining,
    )


def _work(work: AcquiredJob) -> shapes.WorkOut:
    job, trace = work.job, read_trace(work.notes)
    milliseconds = work.left // _MILLISECOND
    return shapes.WorkOut.of(
        job,
        lease=work.lease,
        expires_in_ms=milliseconds,
        renew_in_ms=milliseconds // 3,
        fence=job.token,
        timeout=work.timeout,
        suspect=work.suspect,
        idempotency_key=work.idempotency_key,
        traceparent=trace.get("traceparent"),
        tracestate=trace.get("tracestate"),
    )


@router.post("/leases:renew")
async def renew(asked: shapes.RenewIn, worker: Worker, remote: Protocol) -> shapes.RenewOut:
    """Extend leases by their own length. `busy` keeps its lease: ask again soon."""
    answers = await remote.renew(worker.holder, asked.leases)
    return shapes.RenewOut(
        leases=[
            shapes.RenewalOut.of(answer, lease=lease)
            for lease, answer in zip(asked.leases, answers, strict=True)
        ]
    )


@router.post("/leases:progress")
async def progress(
    asked: shapes.ProgressIn, worker: Worker, remote: Protocol
) -> shapes.ProgressOut:
    """Report how far the job is, from where it could go on, and what it has found; extends the
    lease. The report that reaches the job's target completes it."""
    reported = await remote.progress(worker.holder, **asked.model_dump())
    return shapes.ProgressOut.model_validate(reported)


@router.post("/leases:complete")
async def complete(asked: shapes.CompleteIn, worker: Worker, remote: Protocol) -> shapes.SettledOut:
    """The job is done. Sending the same again is harmless."""
    return _one(await remote.settle_one(worker.holder, _completed(asked)))


@router.post("/leases:fail")
async def fail(asked: shapes.FailIn, worker: Worker, remote: Protocol) -> shapes.SettledOut:
    """The job has failed: it is tried again by the backoff, after so long, or never."""
    return _one(await remote.settle_one(worker.holder, _failed(asked)))


@router.post("/leases:release")
async def release(asked: shapes.ReleaseIn, worker: Worker, remote: Protocol) -> shapes.SettledOut:
    """Give the job back as it was, its attempt uncharged."""
    return _one(await remote.settle_one(worker.holder, _released(asked)))


@router.post("/leases:settle")
async def settle(asked: shapes.SettleIn, worker: Worker, remote: Protocol) -> shapes.SettleOut:
    """End up to 1,000 leases at once, each in its own way."""
    endings = [_ending(one) for one in asked.endings]
    settled = await remote.settle(worker.holder, endings)
    return shapes.SettleOut(endings=[shapes.SettledOut.of(one) for one in settled])


def _ending(one: shapes.SettleOne) -> SettleCommand:
    match one.complete, one.fail, one.release:
        case shapes.CompleteIn() as said, None, None:
            return _completed(said)
        case None, shapes.FailIn() as said, None:
            return _failed(said)
        case None, None, shapes.ReleaseIn() as said:
            return _released(said)
        case _:
            raise ProblemError("invalid", "an ending is one of complete, fail and release")


def _completed(said: shapes.CompleteIn) -> SettleCommand:
    return SettleCommand(said.lease, Succeeded(said.result, said.reason), said.log)


def _failed(said: shapes.FailIn) -> SettleCommand:
    if (said.retry is Again.AFTER) != (said.after is not None):
        raise ProblemError("invalid", "retry `after` and the seconds in `after` go together")
    error = Error(said.error.type, said.error.message, said.error.trace)
    after = None if said.after is None else timedelta(seconds=said.after)
    failed = Failed(error, retryable=said.retry is not Again.NEVER, after=after)
    return SettleCommand(said.lease, failed, said.log)


def _released(said: shapes.ReleaseIn) -> SettleCommand:
    return SettleCommand(said.lease, Released(), said.log)


def _one(settled: SettleResult) -> shapes.SettledOut:
    if settled.answer is SettleStatus.BUSY:
        raise ProblemError(
            "database-away", "somebody has the job's row locked; send the same again"
        )
    return shapes.SettledOut.of(settled)
