"""Claim jobs, using a second connection for backlogs, and isolate suspects."""

import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._model.lease import ClaimResult
from tenure._model.queue import EVERY_QUEUE, Lane
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._rules import lifecycle
from tenure._rules.claiming import MAX_CLAIM, LaneTracker, scan_delay
from tenure._rules.lifecycle import ALONE_FROM, MAX_WORKER_LOSSES
from tenure._runtime.dispatcher import Dispatcher, WorkerSettings
from tenure._runtime.events import RuntimeEvents
from tenure._runtime.held_leases import HeldLeases
from tenure._services.base import Service, log
from tenure._store.engine import AsyncRunner, ClosableRunner
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.config import Defaults
from tenure.errors import QueryFailed

_SHORTEST_SLEEP = 0.002
_LONGEST_JITTER = 0.05


class Isolation:
    """Decide when a process may hold only a single suspect, and when it should make room for one.

    A suspect that takes down more than its own process can be claimed only by a process that holds
    no other jobs (rule 8). A busy process always holds some jobs, so it stops claiming for a while
    when such a suspect is waiting.
    """

    def __init__(
        self,
        store: Store,
        held_leases: HeldLeases,
        *,
        queues: Sequence[str],
        has_processes: bool,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._held_leases = held_leases
        self._queues = queues
        # Without handler processes, every suspect has to run alone.
        self._alone_from = ALONE_FROM if has_processes else 0
        self._lease = defaults.lease.total_seconds()
        self._free_at = boottime()
        self._makes_room_until = 0.0

    @property
    def forbids_claims(self) -> bool:
        """Whether claims must wait for a suspect that runs alone here or is about to."""
        if not len(self._held_leases):
            return False
        suspects = list(self._held_leases.suspects)
        if any(lifecycle.runs_alone(held.job, alone_from=self._alone_from) for held in suspects):
            return True
        return boottime() < self._makes_room_until

    def limit(self, wanted: int) -> int:
        """Return how many worker losses make a claim for this many jobs skip a suspect."""
        if wanted or len(self._held_leases):
            return self._alone_from
        self._free_at = boottime()
        self._makes_room_until = 0.0
        return MAX_WORKER_LOSSES

    async def check_for_suspects(self, link: AsyncRunner) -> None:
        """If a suspect is waiting, pause claims for up to one lease, once every two leases."""
        now = boottime()
        if now < self._free_at + self._lease or not len(self._held_leases):
            return
        waits = await link.run(self._store.leases.suspect_waits(self._queues, self._alone_from))
        self._free_at = now + self._lease
        if waits:
            self._makes_room_until = now + self._lease


class Claimer(Service):
    """Claim jobs, but never more than can start soon."""

    name = "claimer"

    def __init__(
        self,
        store: Store,
        link: ClosableRunner,
        *,
        queues: Iterable[str],
        worker: WorkerId,
        dispatcher: Dispatcher,
        held_leases: HeldLeases,
        settings: WorkerSettings,
        defaults: Defaults,
        events: RuntimeEvents,
        has_processes: bool = True,
        lease: timedelta | None = None,
    ) -> None:
        super().__init__(defaults.poll)
        self._store = store
        self._link = link
        self._queues = list(queues)
        self._everything = EVERY_QUEUE in self._queues
        self.isolation: Isolation = Isolation(
            store, held_leases, queues=self._queues, has_processes=has_processes, defaults=defaults
        )
        self._lanes = LaneTracker(
            [] if self._everything else self._queues, lag=defaults.late_commit_window
        )
        self._worker = worker
        self._dispatcher = dispatcher
        self._held_leases = held_leases
        self._settings = settings
        self._ttl = lease or defaults.forced_lease
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
        self._events = events
        events.slot_freed.append(self.slot_freed)
        self.empty_claims: int = 0
        self.beside: int = 0
        self.claims: int = 0
        self.claimed: int = 0

    def wake(self, queue: str = "") -> None:
        if queue == SCHEDULES_CHANGED:
            return
        if not queue or self._everything or queue in self._queues:
            if queue and self._everything:
                # Reading all queue names can be slow.
                self._lanes.add([queue])
            self._woken = True
            self.run_soon()

    def slot_freed(self) -> None:
        if self._starved:
            self.run_soon()

    async def tick(self) -> int:
        capacity = self._capacity()
        self._starved = capacity <= 0
        if self._starved:
            return 0
        woken = self._woken
        await self._spread(woken)
        await self._learn_names()
        self._woken = False
        # Empty lanes are skipped while claims come back full, but are always read before sleeping.
        lanes = self._lanes.next_lanes(woken=woken or not self._filled)
        claims = await self._claim_above(lanes, capacity, self._link)
        self._misses = 0 if claims.jobs else self._misses + woken
        self.empty_claims = 0 if claims.jobs else self.empty_claims + 1
        if not claims.jobs:
            self._request_rescue()
        if self._filled:
            self._report_backlog()
            return len(claims.jobs)
        await self._sleep()
        return 1

    async def claim_again(self, link: ClosableRunner) -> int:
        capacity = self._capacity()
        if not self._filled or self._limited or self._lanes.has_skipped or capacity < MAX_CLAIM:
            return 0
        claims = await self._claim_above(self._lanes.next_lanes(), capacity, link)
        return len(claims.jobs)

    def _capacity(self) -> int:
        if self.isolation.forbids_claims:
            return 0
        capacity = self._dispatcher.capacity(coming=self._coming, limited=self._limited)
        return min(capacity, self._held_leases.capacity - self._wanted)

    async def _claim_above(
        self, lanes: list[Lane], count: int, link: ClosableRunner
    ) -> ClaimResult:
        try:
            within = self._first_claim if self._lanes.has_untried(lanes) else None
            claims = await self._claim(lanes, count, link, within=within)
        except QueryFailed as error:
            if not error.is_timeout:
                raise
            lanes = await self._skip(lanes, link)
            claims = await self._claim(lanes, count, link)
        self._lanes.record_claim(lanes, claims, wanted=count)
        if claims.skipped_queues:
            self._dispatcher.release_queue(claims.skipped_queues)
        # More jobs are also waiting if a suspect was claimed alone or skipped.
        left = len(claims.jobs) > 0 and claims.found > len(claims.jobs)
        self._filled = left or claims.found >= count
        return claims

    async def _skip(self, lanes: list[Lane], link: ClosableRunner) -> list[Lane]:
        """Leave the rows that a claim couldn't get past to a scan, and return the next lanes."""
        _, now = await link.run(self._store.leases.next_due(lanes))
        self._lanes.skip(lanes, now)
        # Log this only once, because it may recur until the scans are done.
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(
            level,
            "claimer: too many dead rows in front of the due jobs: continuing with jobs due "
            "within the last minute, older ones follow; tenure doctor shows what keeps vacuum "
            "from removing them",
        )
        self._scan_at = 0.0
        self._report_backlog()
        return self._lanes.next_lanes(woken=True)

    def _request_rescue(self) -> None:
        """Request a sweep of expired leases, because the queue looks empty.

        This happens at most once per poll.
        """
        if boottime() >= self._sweep_at:
            self._sweep_at = boottime() + self._poll
            for notify in self._events.queue_empty:
                notify()

    def _report_backlog(self) -> None:
        for notify in self._events.backlog:
            notify()

    async def _claim(
        self,
        lanes: list[Lane],
        count: int,
        link: ClosableRunner,
        *,
        patient: bool = False,
        within: timedelta | None = None,
    ) -> ClaimResult:
        sent_at = boottime()
        op = self._store.leases.claim(
            lanes,
            count=count,
            worker=self._worker,
            ttl=self._ttl,
            limited=self._limited,
            patient=patient,
            within=within,
            unknown_tasks=list(self._settings.unknown_tasks),
            suspects=self.isolation.limit(self._wanted),
            kept=self._held_leases.at_risk if self._limited else (),
        )
        with self._asking(count, link, patient=patient):
            claims = await link.run(self._holding(op, sent_at))
            self._dispatcher.start_claimed()
        self.claims += 1
        self.claimed += len(claims.jobs)
        self._limited = claims.limited
        for notify in self._events.rescued:
            notify(claims.rescued)
        for bad in claims.unreadable:
            log.warning("claimer: job unreadable, now a dead letter, %s", bad)
        return claims

    def _holding(self, op: Op[ClaimResult], sent_at: float) -> Op[ClaimResult]:
        # This runs where the response arrives, so that a blocked loop can't delay renewals (rule
        # 7).
        claims = yield from op
        self._dispatcher.hold(claims, sent_at)
        return claims

    @contextmanager
    def _asking(self, count: int, link: ClosableRunner, *, patient: bool) -> Iterator[None]:
        # A scan can be slow and finds little, so it doesn't count against slots.
        coming = 0 if patient else count
        beside = link is not self._link
        self._wanted += count
        self._coming += coming
        self.beside += beside
        try:
            yield
        finally:
            self._wanted -= count
            self._coming -= coming
            self.beside -= beside
            self.slot_freed()

    async def scan(self, link: ClosableRunner) -> int:
        """Claim jobs below the floors, which were committed late or locked. This may be slow."""
        began = boottime()
        if began < self._scan_at or (self._filled and not self._lanes.has_skipped):
            return 0
        claimed = 0
        await self._learn_names_slowly(link)
        capacity, lanes = self._capacity(), self._lanes.next_scan_lanes()
        try:
            if lanes and capacity > 0:
                claims = await self._claim(lanes, capacity, link, patient=True)
                self._lanes.record_scan(lanes, claims, wanted=capacity)
                claimed = len(claims.jobs)
                if claimed:
                    self._dispatcher.release_surplus(limited=self._limited)
                    self.empty_claims = 0
        finally:
            # Failed scans take time too.
            took = timedelta(seconds=boottime() - began)
            behind = self._lanes.has_skipped
            wait = scan_delay(took, processes=self._settings.peer_count, behind=behind)
            self._scan_at = boottime() + wait.total_seconds()
        return claimed

    @property
    def until_scan(self) -> float:
        if self._filled and not self._lanes.has_skipped:
            return self._poll
        return max(self._scan_at - boottime(), _SHORTEST_SLEEP)

    async def _sleep(self) -> None:
        if self._woken:
            return
        wait = self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        lanes = self._lanes.next_lanes(woken=True)
        if lanes:
            due, now = await self._link.run(self._store.leases.next_due(lanes))
            if due is not None:
                wait = min(wait, max((due - now).total_seconds(), _SHORTEST_SLEEP))
        await self.sleep(wait)

    async def _spread(self, woken: bool) -> None:
        """Back off with jitter after losing the race for recent wakeups."""
        if woken and self._misses > 1:
            limit = min(_LONGEST_JITTER, 0.001 * 2 ** min(self._misses, 10))
            await self.sleep(random.uniform(0, limit))  # noqa: S311 - spreads load

    async def _learn_names(self) -> None:
        # This runs at most once per second. If dead index entries make it slow, the scan reads the
        # names.
        if not self._everything or self._names_slow or boottime() < self._names_at:
            return
        began = boottime()
        within = None if self._names_at else self._first_claim
        try:
            self._lanes.add(await self._link.run(self._store.leases.queue_names(within=within)))
        except QueryFailed as error:
            if not error.is_timeout:
                raise
            self._names_slow = True
        self._names_at = boottime() + 1
        if self._names_slow or boottime() - began >= self._first_claim.total_seconds():
            self._names_slow, self._names_at, self._scan_at = True, 0.0, 0.0
            self._report_backlog()

    async def _learn_names_slowly(self, link: ClosableRunner) -> None:
        if not self._names_slow or boottime() < self._names_at:
            return
        began = boottime()
        self._lanes.add(await link.run(self._store.leases.queue_names(patient=True)))
        took = timedelta(seconds=boottime() - began)
        self._names_slow = took >= self._first_claim
        wait = scan_delay(took, processes=self._settings.peer_count).total_seconds()
        self._names_at = boottime() + max(wait, 1)

    async def close(self) -> None:
        await self._link.close()


class BacklogClaimer(Service):
    """Claim over a second connection while there is a backlog, and scan below the floors.

    With only one claim in flight, the server would wait while this process reads the claimed jobs,
    and this process would wait while the server claims more.
    """

    name = "claimer 2"

    def __init__(
        self, claimer: Claimer, link: ClosableRunner, *, defaults: Defaults, events: RuntimeEvents
    ) -> None:
        super().__init__(defaults.poll)
        self._claimer = claimer
        self._link = link
        events.backlog.append(self.run_soon)

    async def tick(self) -> int:
        await self._claimer.isolation.check_for_suspects(self._link)
        claimed = await self._claimer.claim_again(self._link) or await self._claimer.scan(
            self._link
        )
        if not claimed:
            await self.sleep(self._claimer.until_scan)
        return 1

    async def close(self) -> None:
        await self._link.close()
