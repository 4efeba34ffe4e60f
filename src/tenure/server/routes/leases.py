"""Worker protocol routes: acquire, renew, progress, complete, fail, release."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials

from tenure.errors import StoreError, TokenRefused
from tenure.gateway import (
    AcquiredJob,
    AcquireResult,
    Error,
    Failed,
    FinalReport,
    Released,
    Remote,
    SettleCommand,
    SettleResult,
    SettleStatus,
    Succeeded,
    WorkerInfo,
)
from tenure.server.auth import FRESH, TokenCache, Worker, bearer
from tenure.server.dependencies import QuotasDep, read_trace
from tenure.server.problems import ProblemError
from tenure.server.schemas import leases as shapes
from tenure.server.schemas.leases import Again
from tenure.types import Scope

if TYPE_CHECKING:
    from tenure.server.throttle import Turns

_MILLISECOND = timedelta(milliseconds=1)
router: APIRouter = APIRouter(prefix="/v1", tags=["leases"])


def _remote(request: Request) -> Remote:
    remote: Remote = request.app.state.remote
    return remote


async def _in_turn(
    request: Request, worker: Worker, remote: Annotated[Remote, Depends(_remote)]
) -> AsyncIterator[Remote]:
    """Return the protocol when it is this token's turn. No token may use all connections."""
    turns: Turns = request.app.state.lease_turns
    async with turns.turn(worker.id):
        yield remote


Protocol = Annotated[Remote, Depends(_remote)]
InTurn = Annotated[Remote, Depends(_in_turn)]


@router.post("/leases:acquire")
async def acquire(
    body: shapes.AcquireIn,
    worker: Worker,
    remote: Protocol,
    quotas: QuotasDep,
    request: Request,
    sent: Annotated[HTTPAuthorizationCredentials, Security(bearer)],
) -> shapes.AcquireOut:
    """Take jobs to run, each with a lease. Waits up to `wait` seconds for the first job. If you
    disconnect while waiting, or your token is revoked, any jobs taken are returned to their queues.
    """
    for queue in body.queues:
        worker.must(Scope.WORK, queue)
    quotas.check_names(worker, body.queues)
    token = _TokenWatch(request.app.state.keys, sent.credentials)
    async with _watched(request, token) as gone:
        acquired = await remote.acquire(
            worker.holder,
            body.queues,
            WorkerInfo(**body.worker.model_dump()),
            session=body.session,
            count=body.count,
            holding=body.holding,
            wait=timedelta(seconds=body.wait),
            lease=None if body.lease is None else timedelta(seconds=body.lease),
            gone=gone,
            # A name that only a pattern matches could be invented.
            listed=[queue for queue in body.queues if queue in worker.grant.queues],
            max_sessions=quotas.max_sessions(worker),
        )
    if gone.is_set() or not await token.is_valid():
        await remote.release(worker.holder, acquired)
        acquired = AcquireResult(acquired.session, [])
    if token.refused is not None:
        raise token.refused
    return _acquired(acquired)


class _TokenWatch:
    """Whether the token of a waiting request is still valid. `refused` says why not."""

    def __init__(self, keys: TokenCache, secret: str) -> None:
        self._keys = keys
        self._secret = secret
        self.refused: TokenRefused | None = None

    async def is_valid(self) -> bool:
        """Check again.

        The result is cached for up to two seconds. While the database is down, the last known
        result is returned.
        """
        with suppress(StoreError):
            try:
                await self._keys.find(self._secret)
            except TokenRefused as refused:
                self.refused = refused
        return self.refused is None

    async def until_refused(self) -> None:
        """Wait until the token is revoked or expires."""
        while await self.is_valid():  # noqa: ASYNC110 - another process revokes it
            await asyncio.sleep(FRESH / 4)


@asynccontextmanager
async def _watched(request: Request, token: _TokenWatch) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set when the client disconnects, or its token is refused."""
    gone = asyncio.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async def watch_token() -> None:
        await token.until_refused()
        gone.set()

    watching = [asyncio.create_task(watch()), asyncio.create_task(watch_token())]
    try:
        yield gone
    finally:
        for task in watching:
            task.cancel()


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
async def renew(body: shapes.RenewIn, worker: Worker, remote: InTurn) -> shapes.RenewOut:
    """Renew leases for their full length."""
    answers = await remote.renew(worker.holder, body.leases)
    return shapes.RenewOut(
        leases=[
            shapes.RenewalOut.of(answer, lease=lease)
            for lease, answer in zip(body.leases, answers, strict=True)
        ]
    )


@router.post("/leases:progress")
async def progress(body: shapes.ProgressIn, worker: Worker, remote: InTurn) -> shapes.ProgressOut:
    """Report progress, a cursor and items. Renews the lease. A report that reaches the job's target
    completes the job.
    """
    reported = await remote.progress(worker.holder, **body.model_dump())
    return shapes.ProgressOut.model_validate(reported)


@router.post("/leases:complete")
async def complete(body: shapes.CompleteIn, worker: Worker, remote: InTurn) -> shapes.SettledOut:
    """Complete a job, with its last cursor and items in the same transaction. Repeating the
    request is safe.
    """
    return _one(await remote.settle_one(worker.holder, _completed(body)))


@router.post("/leases:fail")
async def fail(body: shapes.FailIn, worker: Worker, remote: InTurn) -> shapes.SettledOut:
    """Report a failed attempt. Repeating the request is safe."""
    return _one(await remote.settle_one(worker.holder, _failed(body)))


@router.post("/leases:release")
async def release(body: shapes.ReleaseIn, worker: Worker, remote: InTurn) -> shapes.SettledOut:
    """Return a job without using up an attempt. Repeating the request is safe."""
    return _one(await remote.settle_one(worker.holder, _released(body)))


@router.post("/leases:settle")
async def settle(body: shapes.SettleIn, worker: Worker, remote: InTurn) -> shapes.SettleOut:
    """Complete, fail or release up to 1,000 jobs in one request."""
    endings = [_ending(one) for one in body.endings]
    settled = await remote.settle(worker.holder, endings)
    return shapes.SettleOut(endings=[shapes.SettledOut.of(one) for one in settled])


def _ending(one: shapes.SettleOne) -> SettleCommand:
    match one.complete, one.fail, one.release:
        case shapes.CompleteIn() as ending, None, None:
            return _completed(ending)
        case None, shapes.FailIn() as ending, None:
            return _failed(ending)
        case None, None, shapes.ReleaseIn() as ending:
            return _released(ending)
        case _:
            raise ProblemError(
                "invalid", "each ending must have exactly one of complete, fail and release"
            )


def _completed(ending: shapes.CompleteIn) -> SettleCommand:
    report = None
    if ending.cursor is not None or ending.items:
        report = FinalReport(ending.cursor, ending.items)
    return SettleCommand(ending.lease, Succeeded(ending.result, ending.reason, report), ending.log)


def _failed(ending: shapes.FailIn) -> SettleCommand:
    if (ending.retry is Again.AFTER) != (ending.after is not None):
        raise ProblemError("invalid", "`after` must be given with retry: after, and only then")
    error = Error(ending.error.type, ending.error.message, ending.error.trace)
    after = None if ending.after is None else timedelta(seconds=ending.after)
    failed = Failed(error, retryable=ending.retry is not Again.NEVER, after=after)
    return SettleCommand(ending.lease, failed, ending.log)


def _released(ending: shapes.ReleaseIn) -> SettleCommand:
    return SettleCommand(ending.lease, Released(), ending.log)


def _one(settled: SettleResult) -> shapes.SettledOut:
    if settled.answer is SettleStatus.BUSY:
        raise ProblemError(
            "database-away", "another transaction has locked the job. Send the same request again"
        )
    return shapes.SettledOut.of(settled)
