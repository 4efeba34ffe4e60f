"""Claims, scans, and the second claim of a backlog.

What claims beside the claimer, over a connection of its own.

Where there is a backlog: a second claim is on its way while the first one's jobs are read. Without
it the server waits while this process reads what it claimed, and this process waits while the
server claims. And at all times: the look below the floors, which may take long.
"""

import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._model.lease import ClaimResult
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._rules.claiming import MAX_CLAIM, LaneTracker, scan_delay
from tenure._runtime.dispatcher import Dispatcher, WorkerSettings
from tenure._runtime.held_leases import HeldLeases
from tenure._runtime.suspects import Isolation
from tenure._services.base import Service, log
from tenure._store.engine import ClosableRunner
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.config import Defaults
from tenure.errors import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenure._model.lease import RescuedLease


_SHORTEST_SLEEP = 0.002
_LONGEST_JITTER = 0.05


class Claimer(Service):
    """Asks the store for work, never for more than can begin soon."""

    name = "claimer"

    def __init__(
        self,
        store: Store,
        link: ClosableRunner,
        *,
        queues: Iterable[str],
        worker: WorkerId,
        dispatcher: Dispatcher,
        holdings: HeldLeases,
        notes: WorkerSettings,
        defaults: Defaults,
        has_processes: bool = True,
    ) -> None:
        super().__init__(defaults.poll)
        self._store = store
        self._link = link
        self._queues = list(queues)
        self._everything = EVERY_QUEUE in self._queues
        self._isolation = Isolation(
            store, holdings, queues=self._queues, has_processes=has_processes, defaults=defaults
        )
        self._book = LaneTracker([] if self._everything else self._queues, lag=defaults.floor_lag)
        self._worker = worker
        self._dispatcher = dispatcher
        self._holdings = holdings
        self._notes = notes
        self._ttl = defaults.forced_lease
        self._first_claim = defaults.first_claim
        self._has_warned = False
        self._poll = defaults.poll.total_seconds()
        self._limited = False
        self._woken = True
        self._filled = False
        self._wanted = 0
        self._coming = 0
        self._starved = False
        self._misses = 0
        self._scan_at = boottime() + self._poll
        self._names_at = 0.0
        self._names_slow = False
        self._sweep_at = 0.0
        self.on_backlog: Callable[[], None] = lambda: None
        self.on_empty: Callable[[], None] = lambda: None
        self.on_rescued: Callable[[Sequence[RescuedLease]], None] = lambda _jobs: None
        self.empty_claims: int = 0
        self.beside: int = 0
        self.claims: int = 0
        self.claimed: int = 0

    def wake(self, queue: str = "") -> None:
        """There may be something in this queue, or in any; what is about schedules is not."""
        if queue == SCHEDULES_CHANGED:
            return
        if not queue or self._everything or queue in self._queues:
            if queue and self._everything:
                # The list of all queues may be long in coming.
                self._book.add([queue])
            self._woken = True
            self.run_soon()

    def slot_freed(self) -> None:
        """A slot is free; of interest only if all were taken."""
        if self._starved:
            self.run_soon()

    async def tick(self) -> int:
        """One claim; after one that was not filled, sleep until more may be due."""
        room = self._capacity()
        self._starved = room <= 0
        if self._starved:
            return 0
        woken = self._woken
        await self._spread(woken)
        await self._learn_names()
        self._woken = False
        # Lanes that were empty are left out while claims are filled; before a sleep, none is.
        asked = self._book.next_lanes(woken=woken or not self._filled)
        claims = await self._claim_above(asked, room, self._link)
        self._misses = 0 if claims.jobs else self._misses + woken
        self.empty_claims = 0 if claims.jobs else self.empty_claims + 1
        if not claims.jobs:
            self._have_swept()
        if self._filled:
            self.on_backlog()
            return len(claims.jobs)
        await self._sleep()
        return 1

    async def claim_again(self, link: ClosableRunner) -> int:
        """One more claim by another connection, beside the one that is on its way: only for a
        backlog, and as large as claims are. Others' claims are passed over as ever."""
        room = self._capacity()
        if not self._filled or self._limited or self._book.has_skipped or room < MAX_CLAIM:
            return 0
        claims = await self._claim_above(self._book.next_lanes(), room, link)
        return len(claims.jobs)

    def _capacity(self) -> int:
        """How many jobs may be asked for, beside those that were and have not come yet."""
        if self._isolation.forbids_claims:
            return 0
        room = self._dispatcher.capacity(coming=self._coming, limited=self._limited)
        return min(room, self._holdings.capacity - self._wanted)

    async def _claim_above(self, asked: list[Lane], room: int, link: ClosableRunner) -> ClaimResult:
        """A claim above the floors, which move by what it finds."""
        try:
            within = self._first_claim if self._book.has_untried(asked) else None
            claims = await self._claim(asked, room, link, within=within)
        except QueryFailed as error:
            if not error.is_timeout:
                raise
            asked = await self._skip(asked, link)
            claims = await self._claim(asked, room, link)
        self._book.record_claim(asked, claims, wanted=room)
        if claims.skipped_queues:
            self._dispatcher.release_queue(claims.skipped_queues)
        # There is more, too, where a suspect came alone or was passed over.
        left = len(claims.jobs) > 0 and claims.found > len(claims.jobs)
        self._filled = left or claims.found >= room
        return claims

    async def _skip(self, asked: list[Lane], link: ClosableRunner) -> list[Lane]:
        """Leave what a claim could not walk over in time to the scan, which begins now; the lanes
        of the next claim."""
        _, now = await link.run(self._store.next_due(asked))
        self._book.skip(asked, now)
        # Said once: it may recur until the scans are through.
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(
            level,
            "claimer: too many dead rows in front of the due jobs: continuing with jobs due "
            "within the last minute, older ones follow; tenure doctor shows what keeps vacuum "
            "from removing them",
        )
        self._scan_at = 0.0
        self.on_backlog()
        return self._book.next_lanes(woken=True)

    def _have_swept(self) -> None:
        """Found nothing: perhaps there is a lease that has run out. At most once per poll."""
        if boottime() >= self._sweep_at:
            self._sweep_at = boottime() + self._poll
            self.on_empty()

    async def _claim(
        self,
        asked: list[Lane],
        room: int,
        link: ClosableRunner,
        *,
        patient: bool = False,
        within: timedelta | None = None,
    ) -> ClaimResult:
        asked_at = boottime()
        op = self._store.claim(
            asked,
            count=room,
            worker=self._worker,
            ttl=self._ttl,
            limited=self._limited,
            patient=patient,
            within=within,
            unknown_tasks=list(self._notes.unknown_tasks),
            suspects=self._isolation.limit(self._wanted),
            kept=self._holdings.at_risk if self._limited else (),
        )
        with self._asking(room, link, patient=patient):
            claims = await link.run(self._holding(op, asked_at))
            self._dispatcher.start_claimed()
        self.claims += 1
        self.claimed += len(claims.jobs)
        self._limited = claims.limited
        self.on_rescued(claims.rescued)
        return claims

    def _holding(self, op: Op[ClaimResult], asked_at: float) -> Op[ClaimResult]:
        """The claim, and its leases held as soon as the answer is here, on whatever thread that is:
        a handler that blocks the loop must not keep them from being renewed (rule 7)."""
        claims = yield from op
        self._dispatcher.hold(claims, asked_at)
        return claims

    @contextmanager
    def _asking(self, room: int, link: ClosableRunner, *, patient: bool) -> Iterator[None]:
        """Count what is asked for until it is answered: against the slots, but for a scan, which
        may take long and finds little; and always against what can be held."""
        coming = 0 if patient else room
        beside = link is not self._link
        self._wanted += room
        self._coming += coming
        self.beside += beside
        try:
            yield
        finally:
            self._wanted -= room
            self._coming -= coming
            self.beside -= beside
            self.slot_freed()

    async def look_for_suspects(self, link: ClosableRunner) -> None:
        """Make room, by another connection, if a suspect waits that must run alone."""
        await self._isolation.check_for_suspects(link)

    async def scan(self, link: ClosableRunner) -> int:
        """Look below the floors, for what was committed late or locked when they passed; by another
        connection, for it may take long, and claims go on meanwhile. What they have left no slot
        for is given back."""
        began = boottime()
        if began < self._scan_at or (self._filled and not self._book.has_skipped):
            return 0
        found = 0
        await self._learn_names_patiently(link)
        room, lanes = self._capacity(), self._book.next_scan_lanes()
        try:
            if lanes and room > 0:
                claims = await self._claim(lanes, room, link, patient=True)
                self._book.record_scan(lanes, claims, wanted=room)
                found = len(claims.jobs)
                if found:
                    self._dispatcher.release_surplus(limited=self._limited)
                    self.empty_claims = 0
        finally:
            # One that failed took its time too.
            took = timedelta(seconds=boottime() - began)
            behind = self._book.has_skipped
            wait = scan_delay(took, processes=self._notes.peer_count, behind=behind)
            self._scan_at = boottime() + wait.total_seconds()
        return found

    @property
    def until_scan(self) -> float:
        """How long until it is time to look below the floors; a poll while claims are filled."""
        if self._filled and not self._book.has_skipped:
            return self._poll
        return max(self._scan_at - boottime(), _SHORTEST_SLEEP)

    async def _sleep(self) -> None:
        """Until a wakeup, a free slot, the next time at which something is due, or the poll."""
        if self._woken:
            return
        wait = self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        lanes = self._book.next_lanes(woken=True)
        if lanes:
            due, now = await self._link.run(self._store.next_due(lanes))
            if due is not None:
                wait = min(wait, max((due - now).total_seconds(), _SHORTEST_SLEEP))
        await self.sleep(wait)

    async def _spread(self, woken: bool) -> None:
        """Come a little later to what others were faster at lately."""
        if woken and self._misses > 1:
            limit = min(_LONGEST_JITTER, 0.001 * 2 ** min(self._misses, 10))
            await self.sleep(random.uniform(0, limit))  # noqa: S311 - spreads load

    async def _learn_names(self) -> None:
        """Where every queue is served: which ones there are, asked at most once a second. Where
        that takes long, because dead entries are in front of each name, the scan asks."""
        if not self._everything or self._names_slow or boottime() < self._names_at:
            return
        began = boottime()
        within = None if self._names_at else self._first_claim
        try:
            self._book.add(await self._link.run(self._store.queue_names(within=within)))
        except QueryFailed as error:
            if not error.is_timeout:
                raise
            self._names_slow = True
        self._names_at = boottime() + 1
        if self._names_slow or boottime() - began >= self._first_claim.total_seconds():
            self._names_slow, self._names_at, self._scan_at = True, 0.0, 0.0
            self.on_backlog()

    async def _learn_names_patiently(self, link: ClosableRunner) -> None:
        if not self._names_slow or boottime() < self._names_at:
            return
        began = boottime()
        self._book.add(await link.run(self._store.queue_names(patient=True)))
        took = timedelta(seconds=boottime() - began)
        self._names_slow = took >= self._first_claim
        wait = scan_delay(took, processes=self._notes.peer_count).total_seconds()
        self._names_at = boottime() + max(wait, 1)

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()


class BacklogClaimer(Service):
    """Does for the claimer what must not keep it waiting."""

    name = "claimer 2"

    def __init__(self, claimer: Claimer, link: ClosableRunner, *, defaults: Defaults) -> None:
        super().__init__(defaults.poll)
        self._claimer = claimer
        self._link = link
        claimer.on_backlog = self.run_soon

    async def tick(self) -> int:
        """One more claim, if there is a backlog; else a scan, once it is time for one."""
        await self._claimer.look_for_suspects(self._link)
        claimed = await self._claimer.claim_again(self._link) or await self._claimer.scan(
            self._link
        )
        if not claimed:
            await self.sleep(self._claimer.until_scan)
        return 1

    async def close(self) -> None:
        """Close the connection, if there is one."""
        await self._link.close()
