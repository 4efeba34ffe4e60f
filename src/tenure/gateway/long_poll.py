"""Claims for remote workers, and long polling if a claim finds nothing."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._model.job import PRIORITIES
from tenure._model.lease import ClaimResult
from tenure._model.queue import Lane
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._rules.claiming import LaneTracker, scan_delay
from tenure._rules.lifecycle import MAX_WORKER_LOSSES
from tenure._services.base import Service, log
from tenure._store.engine import Engine
from tenure.config import Defaults
from tenure.errors import QueryFailed

# More concurrent claims would only wait for each other's locks.
_AT_ONCE = 4
# The number of queues whose floors are kept. Without floors, a claim is correct but reads more
# rows.
MOST_NAMES = 1000


@dataclass(eq=False, slots=True)
class Waiter:
    """A pending acquire: its queues, whether it accepts suspects, and the lease it names."""

    queues: frozenset[str]
    suspects: bool = True
    lease: timedelta | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def serves(self, queue: str) -> bool:
        """Return whether this waiter serves the queue. An empty name means any queue."""
        return not queue or queue in self.queues


class LongPoll(Service):
    """Claim jobs for remote workers. Each wakeup wakes one waiter, which then wakes the next."""

    name = "waiting"

    def __init__(self, engine: Engine, *, defaults: Defaults) -> None:
        super().__init__(defaults.poll)
        self._engine = engine
        self._ttl = defaults.forced_lease
        self._first_claim = defaults.first_claim
        self._has_warned = False
        self._poll = defaults.poll.total_seconds()
        self._book = LaneTracker([], lag=defaults.late_commit_window)
        # The book's queues, least recently requested first.
        self._names: dict[str, None] = {}
        self._waiters: dict[Waiter, None] = {}
        self._claiming = asyncio.Semaphore(_AT_ONCE)
        self._limited = False
        self._dismissed = False
        self._scan_at = boottime() + self._poll

    def notify(self, queue: str) -> None:
        """Wake a waiter for this queue. An empty name means any queue."""
        if queue != SCHEDULES_CHANGED:
            self._wake(queue)

    def release_all(self) -> None:
        """Stop waiting: acquires that find nothing return immediately."""
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
        lease: timedelta | None = None,
        until: float,
        gone: asyncio.Event,
    ) -> tuple[ClaimResult, float]:
        """Wait until jobs are due, and claim up to `count`.

        Return the jobs and the time just before the claim.

        Give up at `until` (on the boot-time clock) or when the caller is `gone`, but finish a claim
        that is already in progress.
        """
        with self._waiter(frozenset(queues), suspects=suspects, lease=lease) as waiter:
            while True:
                waiter.woken.clear()
                sent_at = boottime()
                claims = await self._claim(worker, waiter, count)
                if claims.jobs or self._dismissed or not await _woken(waiter.woken, until, gone):
                    return claims, sent_at

    @contextmanager
    def _waiter(
        self, queues: frozenset[str], *, suspects: bool, lease: timedelta | None
    ) -> Iterator[Waiter]:
        # Register before the first claim so no wakeup is missed between the claim and the wait.
        self._remember(queues)
        waiter = Waiter(queues, suspects, lease)
        self._waiters[waiter] = None
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            if waiter.woken.is_set():
                # This wakeup is meant for the next waiter.
                self._wake_for(queues)

    def _remember(self, queues: Iterable[str]) -> None:
        """Keep these queues' floors for later acquires. Beyond the limit, forget the oldest.

        If a queue is forgotten while an acquire is waiting for it, it is read without floors.
        """
        for queue in queues:
            self._names.pop(queue, None)
            self._names[queue] = None
        self._book.add(queues)
        while len(self._names) > MOST_NAMES:
            oldest = next(iter(self._names))
            del self._names[oldest]
            self._book.forget(oldest)

    def _lanes(self, waiter: Waiter) -> list[Lane]:
        """Return the lanes of one waiter's queues. Other waiters' queues cost it nothing."""
        known = self._book.next_lanes(woken=True, among=waiter.queues)
        forgotten = [queue for queue in waiter.queues if queue not in self._names]
        return known + [Lane(queue, priority) for priority in PRIORITIES for queue in forgotten]

    async def _claim(self, worker: WorkerId, waiter: Waiter, count: int) -> ClaimResult:
        async with self._claiming:
            lanes = self._lanes(waiter)
            try:
                within = self._first_claim if self._book.has_untried(lanes) else None
                claims = await self._ask(worker, waiter, lanes, count, within=within)
            except QueryFailed as error:
                if not error.is_timeout:
                    raise
                lanes = await self._skip(waiter, lanes)
                claims = await self._ask(worker, waiter, lanes, count)
            self._book.record_claim(lanes, claims, wanted=count)
            if not claims.jobs and boottime() >= self._scan_at:
                claims = await self._scan(worker, waiter, count, claims)
        if claims.jobs and (claims.found >= count or claims.found > len(claims.jobs)):
            # There are more jobs, or some remain because suspects are claimed alone.
            self._wake_for(waiter.queues)
        return claims

    async def _skip(self, waiter: Waiter, lanes: Sequence[Lane]) -> list[Lane]:
        """Let a scan find the rows that a claim couldn't get past, and return the next lanes."""
        _, now = await self._engine.arun(self._engine.store.leases.next_due(lanes))
        self._book.skip(lanes, now)
        # Log this only once, because it may recur until the scans are done.
        level = logging.DEBUG if self._has_warned else logging.WARNING
        self._has_warned = True
        log.log(
            level,
            "acquire: too many dead rows in front of the due jobs: continuing with jobs due "
            "within the last minute, older ones follow; tenure doctor shows what keeps vacuum "
            "from removing them",
        )
        self._scan_at = 0.0
        return self._lanes(waiter)

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
            ttl=waiter.lease or self._ttl,
            limited=self._limited,
            patient=patient,
            within=within,
            suspects=MAX_WORKER_LOSSES if waiter.suspects else 0,
        )
        claims = await self._engine.arun(op)
        self._limited = claims.limited
        for bad in claims.unreadable:
            log.warning("acquire: job unreadable, now a dead letter, %s", bad)
        return await self._confirmed(claims)

    async def _confirmed(self, claims: ClaimResult) -> ClaimResult:
        """Return the claims to hand out, after confirming those whose loss must be recorded."""
        leases = [each.lease for each in claims.jobs if each.confirm]
        if not leases:
            return claims
        answers = await self._engine.arun(self._engine.store.leases.confirm(leases))
        refused = {lease for lease, ok in zip(leases, answers, strict=True) if not ok}
        return replace(claims, jobs=[job for job in claims.jobs if job.lease not in refused])

    async def _scan(
        self, worker: WorkerId, waiter: Waiter, count: int, claims: ClaimResult
    ) -> ClaimResult:
        """Claim jobs that were committed late, below one queue's floors."""
        began = boottime()
        lanes = self._book.next_scan_lanes(waiter.queues)
        try:
            if lanes:
                claims = await self._ask(worker, waiter, lanes, count, patient=True)
                self._book.record_scan(lanes, claims, wanted=count)
        finally:
            # Failed scans take time too.
            took = timedelta(seconds=boottime() - began)
            wait = scan_delay(took, processes=1, behind=self._book.has_skipped)
            self._scan_at = boottime() + wait.total_seconds()
        return claims

    async def tick(self) -> int:
        """Wake one waiter for each queue that has waiters, then sleep until a job may be due."""
        if not self._waiters:
            return 0
        waited_for = {queue for waiter in self._waiters for queue in waiter.queues}
        self._wake_for(waited_for)
        if not all(waiter.suspects for waiter in self._waiters):
            # The waiter that has waited longest may not accept suspects.
            self._wake_for(waited_for, suspects=True)
        due, now = await self._engine.arun(
            self._engine.store.leases.next_due(self._book.next_lanes(woken=True, among=waited_for))
        )
        if due is not None and (ahead := (due - now).total_seconds()) < self._poll:
            await self.sleep(max(ahead, 0.002))
            self._wake("")
        return 0

    def _wake_for(self, queues: Iterable[str], *, suspects: bool = False) -> None:
        for queue in queues:
            self._wake(queue, suspects=suspects)

    def _wake(self, queue: str, *, suspects: bool = False) -> None:
        """Wake the longest-waiting waiter not yet woken. For suspects, it must accept them."""
        for waiter in self._waiters:
            if suspects and not waiter.suspects:
                continue
            if waiter.serves(queue) and not waiter.woken.is_set():
                waiter.woken.set()
                return


async def _woken(woken: asyncio.Event, until: float, gone: asyncio.Event) -> bool:
    """Wait for a wakeup. Return False on a timeout or if the caller is gone."""
    waits = [asyncio.ensure_future(event.wait()) for event in (woken, gone)]
    try:
        await asyncio.wait(
            waits, timeout=max(until - boottime(), 0), return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()
    return woken.is_set() and not gone.is_set()
