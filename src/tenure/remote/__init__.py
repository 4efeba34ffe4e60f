"""The worker protocol for workers elsewhere: acquire, renew, report, settle, under the same leases
and fences as the workers of this package. A route is a spelling of one of these methods.

The `holder` is whose bearer token is used: a lease is worth nothing to another.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import random

from tenure._model.ids import Json
from tenure._model.job import JobRow
from tenure._model.lease import Claimed, Lease, Renewal, Renewed, Reported, Settled, Settling
from tenure._model.outcome import (
    Ended,
    Error,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
)
from tenure._model.worker import NewWorker
from tenure._rules import backoff, lifecycle, payload
from tenure._services.advancer import Advancer
from tenure._services.folder import Folder
from tenure._services.pruner import Pruner
from tenure._services.rescuer import Rescuer
from tenure._services.supervisor import Supervisor
from tenure.app import Tenure
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue, LeaseLost
from tenure.job import boottime
from tenure.remote.guests import Guests
from tenure.remote.strings import Session, read_lease
from tenure.remote.waiting import Waiting
from tenure.worker.beginning import wakeups

__all__ = [
    "Acquired",
    "Ending",
    "Error",
    "Failed",
    "Introduction",
    "JobRow",
    "Outcome",
    "Released",
    "Remote",
    "Renewal",
    "Renewed",
    "Reported",
    "Session",
    "Settled",
    "Settling",
    "Snoozed",
    "Succeeded",
    "Work",
]

LONGEST_WAIT = timedelta(seconds=55)
MOST_AT_ONCE = 1000
_BUSY_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """How a worker elsewhere introduces itself."""

    name: str
    host: str = ""
    pid: int = 0
    version: str = ""
    language: str = "unknown"
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Work:
    """A job and the lease on it, as a text; `ttl` is how long the lease lasts from now on, and
    `timeout` how many seconds the attempt may take, if that is bounded."""

    job: JobRow
    lease: str
    ttl: timedelta
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Acquired:
    """The answer to an acquire: the session to pass back, the work, and whether the worker was
    asked to drain, in which case there is none."""

    session: str
    work: Sequence[Work]
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How one lease ends, in the words of its holder, with the last of what it logged."""

    lease: str
    outcome: Outcome
    log: str | None = None


class Remote:
    """The protocol's verbs over one database, and the services they need. Lives on one loop."""

    def __init__(self, app: Tenure, *, name: str) -> None:
        engine = app.engine
        self._engine = engine
        self._store = engine.store
        self._waiting = Waiting(engine, defaults=app.defaults)
        link = engine.link(f"tenure {name} presence")
        self._guests = Guests(self._store, link, defaults=app.defaults)
        self._supervisor = Supervisor(
            [
                self._guests,
                self._waiting,
                *wakeups(app, name, self._waiting.hear),
                Rescuer(self._store, link, defaults=app.defaults),
                Pruner(self._store, engine.link(f"tenure {name} pruner")),
                Folder(self._store, engine.link(f"tenure {name} folder")),
                Advancer(
                    self._store,
                    link,
                    engine.link(f"tenure {name} advancer"),
                    defaults=app.defaults,
                ),
            ]
        )
        self._awaited: dict[object, int] = {}
        self._guests.is_waiting = lambda worker: worker in self._awaited

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Its services run as long as the block lasts."""
        self._supervisor.start()
        try:
            yield
        finally:
            await self._supervisor.stop_all()

    async def acquire(
        self,
        holder: str,
        queues: Sequence[str],
        introduction: Introduction,
        *,
        session: str | None = None,
        count: int = 1,
        wait: timedelta = timedelta(0),
        gone: asyncio.Event | None = None,
    ) -> Acquired:
        """Up to `count` due jobs of these queues, under leases that begin now; waits up to `wait`
        for the first, but not for somebody who is `gone`."""
        if not 1 <= count <= MOST_AT_ONCE:
            raise InvalidValue(f"{count} jobs at once is not within 1 to {MOST_AT_ONCE:,}")
        if not timedelta(0) <= wait <= LONGEST_WAIT:
            raise InvalidValue(f"a wait of {wait} is not within 0 to {LONGEST_WAIT.seconds} s")
        if not queues:
            raise InvalidValue("no queue is named; name those to serve")
        for queue in queues:
            payload.check_name(queue, "queue")
        who = Session.read(session, holder) if session else Session.new(holder)
        until = boottime() + wait.total_seconds()
        guest = self._guests.heard(_worker(who, queues, introduction))
        if guest.draining:
            return Acquired(who.text, [], draining=True)
        self._awaited[who.worker] = self._awaited.get(who.worker, 0) + 1
        try:
            claims = await self._waiting.claim(
                who.worker, queues, count=count, until=until, gone=gone or asyncio.Event()
            )
        finally:
            self._awaited[who.worker] -= 1
            if not self._awaited[who.worker]:
                del self._awaited[who.worker]
        guest.held += len(claims.jobs)
        return Acquired(who.text, [_work(who, claimed) for claimed in claims.jobs])

    async def beat(self) -> None:
        """Say of every worker that was heard of lately that it is there, now."""
        await self._guests.tick()

    async def give_back(self, holder: str, acquired: Acquired) -> None:
        """Release what was acquired for somebody who is gone before the answer was written."""
        await self.settle(holder, [Ending(work.lease, Released()) for work in acquired.work])

    async def renew(self, holder: str, leases: Sequence[str]) -> Sequence[Renewal]:
        """Extend leases by their own length; answers in the order asked. Busy is asked again."""
        held = [read_lease(text, holder) for text in leases]
        answers: dict[Lease, Renewal] = {}
        rest = sorted(set(held), key=lambda lease: lease.job_id)
        for _ in range(_BUSY_TRIES):
            asked = await self._engine.arun(self._store.renew(rest))
            answers |= zip(rest, asked, strict=True)
            rest = [lease for lease in rest if answers[lease].answer is Renewed.BUSY]
            if not rest:
                break
        for lease in held:
            self._guests.spoke(lease.claimed_by)
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
    ) -> Reported:
        """Record a report and extend the lease; LeaseLost if it is lost. The report that reaches
        the job's target also completes it."""
        held = read_lease(lease, holder)
        op = self._store.progress(
            held, cursor=cursor, items=items, done=done, total=total, message=message, log=log
        )
        reported = await self._engine.arun(op)
        self._guests.spoke(held.claimed_by, settled=int(reported.reached))
        return reported

    async def settle(self, holder: str, endings: Sequence[Ending]) -> Sequence[Settled]:
        """End running periods; answers in the order asked. Sending the same again is harmless."""
        read = [(read_lease(ending.lease, holder), ending) for ending in endings]
        ended = [await self._decided(lease, ending) for lease, ending in read]
        # The store takes them by id, and each once.
        once = {each.lease: each for each in sorted(ended, key=lambda each: each.lease.job_id)}
        asked = await self._engine.arun(self._store.settle(list(once.values())))
        answers = dict(zip(once, asked, strict=True))
        for lease, _ in read:
            self._guests.spoke(lease.claimed_by, settled=1)
        return [answers[lease] for lease, _ in read]

    async def settle_one(self, holder: str, ending: Ending) -> Settled:
        """End one running period; LeaseLost if it had ended otherwise."""
        [settled] = await self.settle(holder, [ending])
        if settled.answer is Settling.REFUSED:
            raise LeaseLost(
                "this lease is no longer the job's: its time ran out, or it was taken back or "
                "settled before; stop working on it"
            )
        return settled

    async def _decided(self, lease: Lease, ending: Ending) -> Ended:
        """What a failure leads to depends on the job: how many attempts it has, and has had."""
        attempt, limit, wait = 1, 2, timedelta(0)
        if isinstance(ending.outcome, Failed):
            job = await self._engine.arun(self._store.get(lease.job_id))
            if job is not None:
                attempt, limit = job.attempt, job.max_attempts
            wait = backoff.delay(self._guests.backoff, attempt=attempt, chance=random())  # noqa: S311 - spreads retries
        settlement = lifecycle.settle(ending.outcome, attempt=attempt, limit=limit, backoff=wait)
        return Ended(lease, settlement, ending.log)


def _worker(who: Session, queues: Sequence[str], said: Introduction) -> NewWorker:
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


def _work(who: Session, claimed: Claimed) -> Work:
    timeout = (claimed.job.meta or {}).get("timeout", DEFAULTS.timeout.total_seconds())
    return Work(claimed.job, who.lease(claimed.lease), claimed.lease.ttl, timeout)
