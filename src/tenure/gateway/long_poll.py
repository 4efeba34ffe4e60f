"""Claims for workers elsewhere, and the place where those wait who found nothing."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._model.lease import ClaimResult
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._rules.claiming import LaneTracker, scan_delay
from tenure._rules.lifecycle import MAX_WORKER_LOSSES
from tenure._services.base import Service, log
from tenure._store.engine import Engine
from tenure.config import Defaults
from tenure.errors import QueryFailed

# More claims at once would only wait for each other's locks.
_AT_ONCE = 4


@dataclass(eq=False, slots=True)
class Waiter:
    """One acquire that is under way: from which queues, whether suspects may be among its jobs, and
    whether it is worth another look."""

    queues: frozenset[str]
    suspects: bool = True
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def serves(self, queue: str) -> bool:
        """Whether what is in this queue is of interest; without a name, whatever it is."""
        return not queue or queue in self.queues or EVERY_QUEUE in self.queues


class LongPoll(Service):
    """Claims, and wakes one waiter for each word of something to do, not all of them: who is
    served fully, or leaves, wakes the next. As a service it looks once per poll, for all.
    """

    name = "waiting"

    def __init__(self, engine: Engine, *, defaults: Defaults) -> None:
        super().__init__(defaults.poll)
        self._engine = engine
        self._ttl = defaults.forced_lease
        self._first_claim = defaults.first_claim
        self._has_warned = False
        self._poll = defaults.poll.total_seconds()
        self._book = LaneTracker([], lag=defaults.late_commit_window)
        self._waiters: dict[Waiter, None] = {}
        self._claiming = asyncio.Semaphore(_AT_ONCE)
        self._limited = False
        self._dismissed = False
        self._scan_at = boottime() + self._poll
        self._names_at = 0.0

    def notify(self, word: str) -> None:
        """There may be something in this queue, or in any."""
        if word == SCHEDULES_CHANGED:
            return
        if word and self._serves_everything:
            # The list of all queues may be long in coming.
            self._book.add([word])
        self._wake(word)

    def release_all(self) -> None:
        """Let nobody wait any more: who finds nothing is told so at once."""
        self._dismissed = True
        for waiter in self._waiters:
            waiter.woken.set()

    async def claim(
        self,
        worker: WorkerId,
        queues: Iterable[str],
        *,
        count: int,
        suspects: bool = True,
        until: float,
        gone: asyncio.Event,
    ) -> tuple[ClaimResult, float]:
        """Up to `count` due jobs from these queues, as soon as there is one, and the instant
        before they were claimed; none when the time, of the boot-time clock, is up, or whoever
        asked has gone, or all are dismissed. A claim that is under way then is brought to its
        end: what it took is known. `suspects` may be among them only for who holds nothing."""
        with self._waiter(frozenset(queues), suspects=suspects) as waiter:
            while True:
                waiter.woken.clear()
                asked_at = boottime()
                claims = await self._claim(worker, waiter, count)
                if claims.jobs or self._dismissed or not await _told(waiter.woken, until, gone):
                    return claims, asked_at

    @contextmanager
    def _waiter(self, queues: frozenset[str], *, suspects: bool) -> Iterator[Waiter]:
        # Noted before the first look, so that nothing falls between the look and the wait.
        self._book.add(queues - {EVERY_QUEUE})
        waiter = Waiter(queues, suspects)
        self._waiters[waiter] = None
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            if waiter.woken.is_set():
                # The word was for whoever comes next.
                self._wake_for(queues)

    async def _claim(self, worker: WorkerId, waiter: Waiter, count: int) -> ClaimResult:
        async with self._claiming:
            asked = [
                lane for lane in self._book.next_lanes(woken=True) if waiter.serves(lane.queue)
            ]
            try:
                within = self._first_claim if self._book.has_untried(asked) else None
                claims = await self._ask(worker, waiter, asked, count, within=within)
            except QueryFailed as error:
                if not error.is_timeout:
                    raise
                asked = await self._skip(waiter, asked)
                claims = await self._ask(worker, waiter, asked, count)
            self._book.record_claim(asked, claims, wanted=count)
            if not claims.jobs and boottime() >= self._scan_at:
                claims = await self._scan(worker, waiter, count, claims)
        if claims.jobs and (claims.found >= count or claims.found > len(claims.jobs)):
            # There is more, or was left because suspects come alone.
            self._wake_for(waiter.queues)
        return claims

    async def _skip(self, waiter: Waiter, asked: Sequence[Lane]) -> list[Lane]:
        """Leave what a claim could not walk over in time to a scan; the lanes of the next claim."""
        _, now = await self._engine.arun(self._engine.store.leases.next_due(asked))
        self._book.skip(asked, now)
        # Said once: it may recur until the scans are through.
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(
            level,
            "acquire: too many dead rows in front of the due jobs: continuing with jobs due "
            "within the last minute, older ones follow; tenure doctor shows what keeps vacuum "
            "from removing them",
        )
        self._scan_at = 0.0
        return [lane for lane in self._book.next_lanes(woken=True) if waiter.serves(lane.queue)]

    async def _ask(
        self,
        worker: WorkerId,
        waiter: Waiter,
        lanes: Sequence[Lane],
        count: int,
        *,
        patient: bool = False,
        within: timedelta | None = None,
    ) -> ClaimResult:
        op = self._engine.store.leases.claim(
            lanes,
            count=count,
            worker=worker,
            ttl=self._ttl,
            limited=self._limited,
            patient=patient,
            within=within,
            suspects=MAX_WORKER_LOSSES if waiter.suspects else 0,
        )
        claims = await self._engine.arun(op)
        self._limited = claims.limited
        return await self._confirmed(claims)

    async def _confirmed(self, claims: ClaimResult) -> ClaimResult:
        """The claims that may be handed out: a job whose next loss must be known begins, as far as
        anyone here can tell, when its worker gets the answer."""
        asked = [each.lease for each in claims.jobs if each.confirm]
        if not asked:
            return claims
        answers = await self._engine.arun(self._engine.store.leases.confirm(asked))
        refused = {lease for lease, ok in zip(asked, answers, strict=True) if not ok}
        return replace(claims, jobs=[job for job in claims.jobs if job.lease not in refused])

    async def _scan(
        self, worker: WorkerId, waiter: Waiter, count: int, found: ClaimResult
    ) -> ClaimResult:
        """Look below the floors of one queue, for what was committed late."""
        began = boottime()
        lanes = [lane for lane in self._book.next_scan_lanes() if waiter.serves(lane.queue)]
        try:
            if lanes:
                found = await self._ask(worker, waiter, lanes, count, patient=True)
                self._book.record_scan(lanes, found, wanted=count)
        finally:
            # One that failed took its time too.
            took = timedelta(seconds=boottime() - began)
            wait = scan_delay(took, processes=1, behind=self._book.has_skipped)
            self._scan_at = boottime() + wait.total_seconds()
        return found

    async def tick(self) -> int:
        """Wake one waiter for each queue that is waited for; rest until something may be due."""
        if not self._waiters:
            return 0
        if self._serves_everything and boottime() >= self._names_at:
            await self._learn_names()
        waited_for = {queue for waiter in self._waiters for queue in waiter.queues}
        self._wake_for(waited_for)
        if not all(waiter.suspects for waiter in self._waiters):
            # The one who waits longest may be one whom suspects are not for.
            self._wake_for(waited_for, suspects=True)
        due, now = await self._engine.arun(
            self._engine.store.leases.next_due(self._book.next_lanes(woken=True))
        )
        if due is not None and (ahead := (due - now).total_seconds()) < self._poll:
            await self.sleep(max(ahead, 0.002))
            self._wake("")
        return 0

    @property
    def _serves_everything(self) -> bool:
        return any(EVERY_QUEUE in waiter.queues for waiter in self._waiters)

    async def _learn_names(self) -> None:
        """Which queues there are. Where that takes long, because dead entries are in front of each
        name, it is asked seldom."""
        began = boottime()
        try:
            self._book.add(await self._engine.arun(self._engine.store.leases.queue_names()))
        except QueryFailed as error:
            if not error.is_timeout:
                raise
        took = timedelta(seconds=boottime() - began)
        self._names_at = boottime()
        if took > self._first_claim:
            self._names_at += scan_delay(took, processes=1).total_seconds()

    def _wake_for(self, queues: Iterable[str], *, suspects: bool = False) -> None:
        for queue in queues:
            self._wake("" if queue == EVERY_QUEUE else queue, suspects=suspects)

    def _wake(self, queue: str, *, suspects: bool = False) -> None:
        """Wake the one that waits longest, of those that nobody has woken, and that suspects are
        for, if it is about them."""
        for waiter in self._waiters:
            if suspects and not waiter.suspects:
                continue
            if waiter.serves(queue) and not waiter.woken.is_set():
                waiter.woken.set()
                return


async def _told(word: asyncio.Event, until: float, gone: asyncio.Event) -> bool:
    """Whether word came before the time was up, or nobody was left to tell."""
    waits = [asyncio.ensure_future(event.wait()) for event in (word, gone)]
    try:
        await asyncio.wait(
            waits, timeout=max(until - boottime(), 0), return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()
    return word.is_set() and not gone.is_set()
