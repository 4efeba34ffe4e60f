"""Claims jobs for the slots that are free, and sleeps until there may be more."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._model.ids import WorkerId
from tenure._model.lease import Claims
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._rules.lanes import LaneBook, next_scan
from tenure._rules.prefetch import AT_ONCE
from tenure._services.base import Service
from tenure._services.dispatcher import Dispatcher, Notes
from tenure._services.holdings import Holdings
from tenure._store.engine import Link
from tenure._store.port import Store
from tenure.config import Defaults
from tenure.job import boottime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenure._model.lease import Rescued

_SHORTEST_SLEEP = 0.002
_LONGEST_JITTER = 0.05


class Claimer(Service):
    """Asks the store for work, never for more than can begin soon."""

    name = "claimer"

    def __init__(
        self,
        store: Store,
        link: Link,
        *,
        queues: Iterable[str],
        worker: WorkerId,
        dispatcher: Dispatcher,
        holdings: Holdings,
        notes: Notes,
        defaults: Defaults,
    ) -> None:
        super().__init__(defaults.poll)
        self._store = store
        self._link = link
        self._queues = list(queues)
        self._everything = EVERY_QUEUE in self._queues
        self._book = LaneBook([] if self._everything else self._queues, lag=defaults.floor_lag)
        self._worker = worker
        self._dispatcher = dispatcher
        self._holdings = holdings
        self._notes = notes
        self._ttl = defaults.lease_for_all
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
        self._sweep_at = 0.0
        self.on_backlog: Callable[[], None] = lambda: None
        self.on_empty: Callable[[], None] = lambda: None
        self.on_rescued: Callable[[Sequence[Rescued]], None] = lambda _jobs: None
        self.empty_claims: int = 0
        self.beside: int = 0
        self.claims: int = 0
        self.claimed: int = 0

    def wake(self, queue: str = "") -> None:
        """There may be something in this queue, or in any; what is about schedules is not."""
        if queue == SCHEDULES_CHANGED:
            return
        if not queue or self._everything or queue in self._queues:
            self._woken = True
            self.nudge()

    def slot_freed(self) -> None:
        """A slot is free; of interest only if all were taken."""
        if self._starved:
            self.nudge()

    async def tick(self) -> int:
        """One claim; after one that was not filled, sleep until more may be due."""
        room = self._room()
        self._starved = room <= 0
        if self._starved:
            return 0
        woken = self._woken
        await self._spread(woken)
        await self._learn_names()
        self._woken = False
        # Lanes that were empty are left out while claims are filled; before a sleep, none is.
        asked = self._book.ask(woken=woken or not self._filled)
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

    async def second(self, link: Link) -> int:
        """One more claim by another connection, beside the one that is on its way: only for a
        backlog, and as large as claims are. Others' claims are passed over as ever."""
        room = self._room()
        if not self._filled or self._limited or room < AT_ONCE:
            return 0
        claims = await self._claim_above(self._book.ask(), room, link)
        return len(claims.jobs)

    def _room(self) -> int:
        """How many jobs may be asked for, beside those that were and have not come yet."""
        room = self._dispatcher.room(coming=self._coming, limited=self._limited)
        return min(room, self._holdings.room - self._wanted)

    async def _claim_above(self, asked: list[Lane], room: int, link: Link) -> Claims:
        """A claim above the floors, which move by what it finds."""
        claims = await self._claim(asked, room, link)
        self._book.learn(asked, claims, wanted=room)
        if claims.unread:
            self._dispatcher.give_back_from(claims.unread)
        # There is more, too, where a suspect came alone or was passed over.
        left = len(claims.jobs) > 0 and claims.found > len(claims.jobs)
        self._filled = left or claims.found >= room
        return claims

    def _have_swept(self) -> None:
        """Found nothing: perhaps there is a lease that has run out. At most once per poll."""
        if boottime() >= self._sweep_at:
            self._sweep_at = boottime() + self._poll
            self.on_empty()

    async def _claim(
        self, asked: list[Lane], room: int, link: Link, *, patient: bool = False
    ) -> Claims:
        asked_at = boottime()
        op = self._store.claim(
            asked,
            count=room,
            worker=self._worker,
            ttl=self._ttl,
            limited=self._limited,
            patient=patient,
            strangers=list(self._notes.strangers),
        )
        with self._asking(room, link, patient=patient):
            claims = await link.run(op)
        self.claims += 1
        self.claimed += len(claims.jobs)
        self._limited = claims.limited
        self.on_rescued(claims.rescued)
        self._dispatcher.take(claims, asked_at)
        return claims

    @contextmanager
    def _asking(self, room: int, link: Link, *, patient: bool) -> Iterator[None]:
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

    async def scan(self, link: Link) -> int:
        """Look below the floors, for what was committed late or locked when they passed; by another
        connection, for it may take long, and claims go on meanwhile. What they have left no slot
        for is given back."""
        began = boottime()
        if began < self._scan_at or self._filled:
            return 0
        found = 0
        room, lanes = self._room(), self._book.scan()
        try:
            if lanes and room > 0:
                claims = await self._claim(lanes, room, link, patient=True)
                self._book.learn_scan(lanes, claims, wanted=room)
                found = len(claims.jobs)
                if found:
                    self._dispatcher.give_back_surplus(limited=self._limited)
                    self.empty_claims = 0
        finally:
            # One that failed took its time too.
            took = timedelta(seconds=boottime() - began)
            wait = next_scan(took, processes=self._notes.processes)
            self._scan_at = boottime() + wait.total_seconds()
        return found

    @property
    def until_scan(self) -> float:
        """How long until it is time to look below the floors; a poll while claims are filled."""
        return self._poll if self._filled else max(self._scan_at - boottime(), _SHORTEST_SLEEP)

    async def _sleep(self) -> None:
        """Until a wakeup, a free slot, the next time at which something is due, or the poll."""
        if self._woken:
            return
        wait = self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        lanes = self._book.ask(woken=True)
        if lanes:
            due, now = await self._link.run(self._store.next_due(lanes))
            if due is not None:
                wait = min(wait, max((due - now).total_seconds(), _SHORTEST_SLEEP))
        await self.rest(wait)

    async def _spread(self, woken: bool) -> None:
        """Come a little later to what others were faster at lately."""
        if woken and self._misses > 1:
            limit = min(_LONGEST_JITTER, 0.001 * 2 ** min(self._misses, 10))
            await self.rest(random.uniform(0, limit))  # noqa: S311 - spreads load

    async def _learn_names(self) -> None:
        """Where every queue is served: which ones there are, asked at most once a second."""
        if self._everything and boottime() >= self._names_at:
            self._book.add(await self._link.run(self._store.queue_names()))
            self._names_at = boottime() + 1

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()
