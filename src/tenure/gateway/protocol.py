"""The protocol's methods and services. Lease strings are in `lease_strings`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from random import random
from typing import TYPE_CHECKING

from tenure._clock import boottime
from tenure._model.ids import JobId, Json
from tenure._model.job import JobRow, fields
from tenure._model.lease import ClaimedJob, ProgressResult, RenewResult, SettleResult, SettleStatus
from tenure._model.outcome import Released, SettleRequest
from tenure._model.worker import NewWorker
from tenure._rules import idempotency, lifecycle, payload
from tenure._rules.leasing import read_claim_lease, read_extension
from tenure._rules.redaction import HIDDEN, Redactor
from tenure._runtime.startup import wakeups
from tenure._services.base import Supervisor
from tenure._services.operations import OperationRunner
from tenure._services.pruner import Pruner
from tenure._services.rescuer import Rescuer
from tenure._services.rollup import RollupService
from tenure.app import Tenure
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue, LeaseLost, StoreError
from tenure.gateway.lease_strings import RemoteSession, read_lease
from tenure.gateway.long_poll import LongPoll
from tenure.gateway.presence import RemotePresence
from tenure.gateway.types import AcquiredJob, AcquireResult, SettleCommand, WorkerInfo

if TYPE_CHECKING:
    from tenure._store.engine import Engine

LONGEST_WAIT = timedelta(seconds=55)
MOST_AT_ONCE = 1000
# Renewals, results and reports have their own connections, which pages and searches can't exhaust.
_CONNECTIONS = 4
_WAITING = 1000
# How many bytes of JSON to read from a failed job's payload to find the secrets in it.
_LARGEST_READ = 64 * 1024


class Remote:
    """The worker protocol for one database, and its services. It belongs to one event loop."""

    def __init__(
        self, app: Tenure, *, name: str, on_wakeup: Callable[[str], None] | None = None
    ) -> None:
        engine = app.engine
        self._engine = engine
        self._store = engine.store
        self._defaults = app.defaults
        self.lease_engine: Engine = engine.reserve_pool(
            "leases", connections=_CONNECTIONS, waiting=_WAITING
        )
        self._waiting = LongPoll(engine, defaults=app.defaults)
        link = engine.service_connection(f"tenure {name} presence")
        self._guests = RemotePresence(self._store, link, defaults=app.defaults)
        self._supervisor = Supervisor(
            [
                self._guests,
                self._waiting,
                *wakeups(app, name, self._hear),
                Rescuer(self._store, link, defaults=app.defaults),
                Pruner(self._store, engine.service_connection(f"tenure {name} pruner")),
                RollupService(self._store, engine.service_connection(f"tenure {name} folder")),
                OperationRunner(
                    self._store,
                    link,
                    engine.service_connection(f"tenure {name} advancer"),
                    defaults=app.defaults,
                ),
            ]
        )
        self._overheard_by = on_wakeup
        self._awaited: dict[object, int] = {}
        self._guests.is_waiting = lambda worker: worker in self._awaited

    def _hear(self, queue: str) -> None:
        self._waiting.notify(queue)
        if self._overheard_by is not None:
            self._overheard_by(queue)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._supervisor.start()
        try:
            yield
        finally:
            await self._supervisor.stop_all()

    @property
    def waiting(self) -> int:
        return sum(self._awaited.values())

    async def acquire(
        self,
        holder: str,
        queues: Sequence[str],
        introduction: WorkerInfo,
        *,
        session: str | None = None,
        count: int = 1,
        holding: int | None = None,
        wait: timedelta = timedelta(0),
        lease: timedelta | None = None,
        gone: asyncio.Event | None = None,
        listed: Sequence[str] | None = None,
        max_sessions: float | None = None,
    ) -> AcquireResult:
        """Acquire up to `count` due jobs under new leases, waiting up to `wait` for the first one.

        `holding` is the number of jobs the worker holds. Only a worker that holds none gets a
        suspect. `lease` is the length of each job's lease and of its renewals (default: the job's,
        queue's or installation's). `listed` names the queues to list even if they contain no jobs
        (default: all of them).
        """
        if not 1 <= count <= MOST_AT_ONCE:
            raise InvalidValue(f"count must be 1 to {MOST_AT_ONCE:,}, got {count}")
        if not timedelta(0) <= wait <= LONGEST_WAIT:
            raise InvalidValue(f"wait must be 0 to {LONGEST_WAIT.seconds} s, got {wait}")
        if holding is not None and holding < 0:
            raise InvalidValue(f"holding must be 0 or more, got {holding}")
        lease = read_claim_lease(lease, defaults=self._defaults)
        if not queues:
            raise InvalidValue("queues must name at least one queue")
        for queue in queues:
            payload.check_name(queue, "queue")
        remote = RemoteSession.read(session, holder) if session else RemoteSession.new(holder)
        began = boottime()
        me = _worker(remote, queues, introduction, listed)
        guest = self._guests.register(me, holder=holder, max_sessions=max_sessions)
        if guest.draining:
            return AcquireResult(remote.text, [], draining=True)
        self._awaited[remote.worker] = self._awaited.get(remote.worker, 0) + 1
        try:
            while True:
                claims, claimed_at = await self._waiting.claim(
                    remote.worker,
                    queues,
                    count=count,
                    # If `holding` is omitted, suspects are allowed: older workers don't send it.
                    suspects=not holding,
                    lease=lease,
                    until=began + wait.total_seconds(),
                    gone=gone or asyncio.Event(),
                )
                fresh = [each for each in claims.jobs if not lifecycle.is_expired(each.job)]
                await self._end_expired(claims.jobs)
                if fresh or not claims.jobs:
                    break
        finally:
            self._awaited[remote.worker] -= 1
            if not self._awaited[remote.worker]:
                del self._awaited[remote.worker]
        guest.held += len(fresh)
        now = boottime()
        used = timedelta(seconds=now - claimed_at)
        work = [self._work(remote, claimed, used) for claimed in fresh]
        return AcquireResult(remote.text, work, waited=timedelta(seconds=now - began))

    async def _end_expired(self, claimed: Sequence[ClaimedJob]) -> None:
        """End expired jobs. If that fails, their leases run out without delaying anything."""
        ended = [
            SettleRequest(
                each.lease,
                lifecycle.settle(
                    lifecycle.EXPIRED,
                    attempt=each.job.attempt,
                    limit=each.job.max_attempts,
                    backoff=timedelta(0),
                ),
            )
            for each in claimed
            if lifecycle.is_expired(each.job)
        ]
        if ended:
            with suppress(StoreError):
                await self._engine.arun(self._store.settlement.settle(ended))

    def release_all(self) -> None:
        """Stop pending acquires: the server is about to shut down."""
        self._waiting.release_all()

    async def heartbeat(self) -> None:
        await self._guests.tick()

    async def release(self, holder: str, acquired: AcquireResult) -> None:
        """Release jobs acquired for a caller that left before the response was written."""
        await self.settle(holder, [SettleCommand(work.lease, Released()) for work in acquired.work])

    async def renew(self, holder: str, leases: Sequence[str]) -> Sequence[RenewResult]:
        """Extend each lease by its own length, without waiting. Results are in request order."""
        held = [read_lease(text, holder)[0] for text in leases]
        # Send each lease to the store only once, in id order.
        once = sorted(set(held), key=lambda lease: lease.job_id)
        results = await self.lease_engine.arun(self._store.leases.renew(once))
        answers = dict(zip(once, results, strict=True))
        for lease in held:
            self._guests.touch(lease.claimed_by)
        return [answers[lease] for lease in held]

    async def progress(
        self,
        holder: str,
        lease: str,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        extend: float | None = None,
        log: str | None = None,
    ) -> ProgressResult:
        """Record a report and extend the lease, by `extend` seconds if that is longer.

        If the job has reached its target, complete it.
        """
        held, _ = read_lease(lease, holder)
        op = self._store.leases.progress(
            held,
            cursor=cursor,
            items=items,
            done=done,
            total=total,
            message=message,
            extend=read_extension(extend),
            log=log,
        )
        reported = await self.lease_engine.arun(op)
        self._guests.touch(held.claimed_by, settled=int(reported.reached))
        return reported

    async def settle(self, holder: str, endings: Sequence[SettleCommand]) -> Sequence[SettleResult]:
        """End attempts. Repeating the call is safe. Retry those that are `busy`.

        Results are in request order.
        """
        ended = await self._without_secrets([self._ended(ending, holder) for ending in endings])
        once = {each.lease: each for each in sorted(ended, key=lambda each: each.lease.job_id)}
        results = await self.lease_engine.arun(self._store.settlement.settle(list(once.values())))
        answers = dict(zip(once, results, strict=True))
        for lease, answer in answers.items():
            over = answer.answer is not SettleStatus.BUSY
            self._guests.touch(lease.claimed_by, settled=int(over))
        return [answers[each.lease] for each in ended]

    async def _without_secrets(self, ended: Sequence[SettleRequest]) -> Sequence[SettleRequest]:
        """Compute error signatures without the jobs' secrets.

        Dead letters are listed by signature, so a signature must not reveal any secrets.
        """
        failed = {each.lease.job_id for each in ended if each.settlement.error is not None}
        if not failed:
            return ended
        rows = await self.lease_engine.arun(
            self._store.jobs.get_many(sorted(failed), largest=_LARGEST_READ)
        )
        changed = await self.lease_engine.arun(self._store.settings.changed())
        jobs = {row.id: row for row in rows}
        redactor = Redactor(changed.get("redact", ()))
        return await asyncio.to_thread(lambda: [_signed(each, jobs, redactor) for each in ended])

    async def settle_one(self, holder: str, ending: SettleCommand) -> SettleResult:
        """End one attempt; raise LeaseLost if it already ended differently."""
        [settled] = await self.settle(holder, [ending])
        if settled.answer is SettleStatus.REFUSED:
            raise LeaseLost(
                "this lease is no longer the job's: it expired, was revoked, or was settled "
                "before; stop working on it"
            )
        return settled

    def _work(self, remote: RemoteSession, claimed: ClaimedJob, used: timedelta) -> AcquiredJob:
        job = claimed.job
        timeout = (job.meta or {}).get("timeout", DEFAULTS.timeout.total_seconds())
        lease = remote.lease(claimed.lease, attempt=job.attempt)
        left = max(claimed.lease.ttl - used, timedelta(0))
        key = idempotency.key(self._engine.schema, job)
        return AcquiredJob(job, lease, left, timeout, fields(job.meta), key, suspect=job.suspect)

    def _ended(self, ending: SettleCommand, holder: str) -> SettleRequest:
        lease, attempt = read_lease(ending.lease, holder)
        chance = random()  # noqa: S311 - spreads retries
        settlement = lifecycle.settle(
            ending.outcome,
            attempt=attempt,
            # The statement checks whether this was the last attempt, because the row holds the
            # limit.
            limit=attempt + 1,
            backoff=lifecycle.delay(self._guests.backoff, attempt=attempt, chance=chance),
        )
        return SettleRequest(lease, settlement, ending.log)


def _signed(
    ended: SettleRequest, jobs: Mapping[JobId, JobRow], redactor: Redactor
) -> SettleRequest:
    error, job = ended.settlement.error, jobs.get(ended.lease.job_id)
    if error is None or job is None:
        return ended
    signature = redactor.error(error, of=job).signature
    if job.args is None:  # Too large to be read, so its secrets are not known.
        signature = f"{error.type}: {HIDDEN}"
    signed = replace(error, signature=signature)
    return ended._replace(settlement=replace(ended.settlement, error=signed))


def _worker(
    remote: RemoteSession, queues: Sequence[str], info: WorkerInfo, listed: Sequence[str] | None
) -> NewWorker:
    return NewWorker(
        remote.worker,
        info.name,
        info.host,
        info.pid,
        info.version,
        list(queues),
        info.slots,
        info.language,
        listed,
    )
