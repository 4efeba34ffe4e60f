"""The protocol's verbs, and the services they need. Leases as text are in `lease_strings`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from random import random

from tenure._clock import boottime
from tenure._model.ids import Json
from tenure._model.job import fields
from tenure._model.lease import ClaimedJob, ProgressResult, RenewResult, SettleResult, SettleStatus
from tenure._model.outcome import Released, SettleRequest
from tenure._model.worker import NewWorker
from tenure._rules import idempotency, lifecycle, payload
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

LONGEST_WAIT = timedelta(seconds=55)
MOST_AT_ONCE = 1000


class Remote:
    """The protocol's verbs over one database, and the services they need. Lives on one loop."""

    def __init__(
        self, app: Tenure, *, name: str, on_wakeup: Callable[[str], None] | None = None
    ) -> None:
        engine = app.engine
        self._engine = engine
        self._store = engine.store
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

    def _hear(self, word: str) -> None:
        self._waiting.notify(word)
        if self._overheard_by is not None:
            self._overheard_by(word)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Its services run as long as the block lasts."""
        self._supervisor.start()
        try:
            yield
        finally:
            await self._supervisor.stop_all()

    @property
    def waiting(self) -> int:
        """How many acquires are under way."""
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
        gone: asyncio.Event | None = None,
    ) -> AcquireResult:
        """Up to `count` due jobs of these queues, under leases that begin now; waits up to `wait`
        for the first, but not for somebody who is `gone`. `holding` is how many jobs the worker
        holds now, None if it did not say: a suspect is only for one that holds none."""
        if not 1 <= count <= MOST_AT_ONCE:
            raise InvalidValue(f"{count} jobs at once is not within 1 to {MOST_AT_ONCE:,}")
        if not timedelta(0) <= wait <= LONGEST_WAIT:
            raise InvalidValue(f"a wait of {wait} is not within 0 to {LONGEST_WAIT.seconds} s")
        if holding is not None and holding < 0:
            raise InvalidValue(f"holding must not be negative, got {holding}")
        if not queues:
            raise InvalidValue("no queue is named; name those to serve")
        for queue in queues:
            payload.check_name(queue, "queue")
        who = RemoteSession.read(session, holder) if session else RemoteSession.new(holder)
        began = boottime()
        guest = self._guests.register(_worker(who, queues, introduction))
        if guest.draining:
            return AcquireResult(who.text, [], draining=True)
        self._awaited[who.worker] = self._awaited.get(who.worker, 0) + 1
        try:
            while True:
                claims, claimed_at = await self._waiting.claim(
                    who.worker,
                    queues,
                    count=count,
                    # Without a word it may come beside others, as it did before workers said it.
                    suspects=not holding,
                    until=began + wait.total_seconds(),
                    gone=gone or asyncio.Event(),
                )
                fresh = [each for each in claims.jobs if not lifecycle.is_expired(each.job)]
                await self._end_expired(claims.jobs)
                if fresh or not claims.jobs:
                    break
        finally:
            self._awaited[who.worker] -= 1
            if not self._awaited[who.worker]:
                del self._awaited[who.worker]
        guest.held += len(fresh)
        now = boottime()
        used = timedelta(seconds=now - claimed_at)
        work = [self._work(who, claimed, used) for claimed in fresh]
        return AcquireResult(who.text, work, waited=timedelta(seconds=now - began))

    async def _end_expired(self, claimed: Sequence[ClaimedJob]) -> None:
        """End what is no longer worth running. If that fails, its lease runs out, and nobody else
        waits for it."""
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
        """Let nobody wait any more: it is about to end."""
        self._waiting.release_all()

    async def heartbeat(self) -> None:
        """Say of every worker that was heard of lately that it is there, now."""
        await self._guests.tick()

    async def release(self, holder: str, acquired: AcquireResult) -> None:
        """Release what was acquired for somebody who is gone before the answer was written."""
        await self.settle(holder, [SettleCommand(work.lease, Released()) for work in acquired.work])

    async def renew(self, holder: str, leases: Sequence[str]) -> Sequence[RenewResult]:
        """Extend leases by their own length; answers in the order asked. Never waits."""
        held = [read_lease(text, holder)[0] for text in leases]
        # The store takes them by id, and each once.
        once = sorted(set(held), key=lambda lease: lease.job_id)
        asked = await self._engine.arun(self._store.leases.renew(once))
        answers = dict(zip(once, asked, strict=True))
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
        log: str | None = None,
    ) -> ProgressResult:
        """Record a report and extend the lease; LeaseLost if it is lost. The report that reaches
        the job's target also completes it."""
        held, _ = read_lease(lease, holder)
        op = self._store.leases.progress(
            held, cursor=cursor, items=items, done=done, total=total, message=message, log=log
        )
        reported = await self._engine.arun(op)
        self._guests.touch(held.claimed_by, settled=int(reported.reached))
        return reported

    async def settle(self, holder: str, endings: Sequence[SettleCommand]) -> Sequence[SettleResult]:
        """End running periods, in one transaction or several; answers in the order asked. Sending
        the same again is harmless. Busy is a row that somebody has locked: ask again."""
        ended = [self._ended(ending, holder) for ending in endings]
        once = {each.lease: each for each in sorted(ended, key=lambda each: each.lease.job_id)}
        asked = await self._engine.arun(self._store.settlement.settle(list(once.values())))
        answers = dict(zip(once, asked, strict=True))
        for lease, answer in answers.items():
            over = answer.answer is not SettleStatus.BUSY
            self._guests.touch(lease.claimed_by, settled=int(over))
        return [answers[each.lease] for each in ended]

    async def settle_one(self, holder: str, ending: SettleCommand) -> SettleResult:
        """End one running period; LeaseLost if it had ended otherwise."""
        [settled] = await self.settle(holder, [ending])
        if settled.answer is SettleStatus.REFUSED:
            raise LeaseLost(
                "this lease is no longer the job's: its time ran out, or it was taken back or "
                "settled before; stop working on it"
            )
        return settled

    def _work(self, who: RemoteSession, claimed: ClaimedJob, used: timedelta) -> AcquiredJob:
        job = claimed.job
        timeout = (job.meta or {}).get("timeout", DEFAULTS.timeout.total_seconds())
        lease = who.lease(claimed.lease, attempt=job.attempt)
        left = max(claimed.lease.ttl - used, timedelta(0))
        key = idempotency.key(self._engine.schema, job)
        return AcquiredJob(job, lease, left, timeout, fields(job.meta), key, suspect=job.suspect)

    def _ended(self, ending: SettleCommand, holder: str) -> SettleRequest:
        lease, attempt = read_lease(ending.lease, holder)
        chance = random()  # noqa: S311 - spreads retries
        settlement = lifecycle.settle(
            ending.outcome,
            attempt=attempt,
            # Whether it was the last one, the statement knows: the row says how many there are.
            limit=attempt + 1,
            backoff=lifecycle.delay(self._guests.backoff, attempt=attempt, chance=chance),
        )
        return SettleRequest(lease, settlement, ending.log)


def _worker(who: RemoteSession, queues: Sequence[str], said: WorkerInfo) -> NewWorker:
    return NewWorker(
        who.worker,
        said.name,
        said.host,
        said.pid,
        said.version,
        list(queues),
        said.slots,
        said.language,
    )
