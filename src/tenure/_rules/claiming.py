"""Decide which lanes a claim reads, and how many jobs it prefetches.

A floor is a hint that lets a claim skip dead index entries. It trails the claimed rows, so jobs
whose enqueue commits a little late are still above it. Occasional scans of a lane from zero find
any rows below its floor.

A new worker has no floors. If an open transaction keeps vacuum from removing dead entries, the
first claim may not get past all of them in time. In that case, the lanes start at jobs that became
due recently, and the next scan, which may be slow, finds the rest.

Prefetched jobs are unavailable to other workers. So a worker prefetches only as many jobs as it
will start shortly at its recent rate, and none if its jobs run for a long time.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tenure._model.ids import JobId
from tenure._model.job import PRIORITIES
from tenure._model.lease import ClaimResult
from tenure._model.queue import EVERY_QUEUE, Floor, Lane
from tenure.config import DEFAULTS

LAG_ROWS = 1000
PROBE_EMPTY_EVERY = 4
SCAN_SHARE = 20
SCAN_AT_LEAST = timedelta(milliseconds=200)
# Where a lane begins if it can't be read from zero in time.
RECENT = timedelta(minutes=1)


@dataclass(slots=True)
class _LaneState:
    """A lane's state. If `skipped`, the rows below its floor were never read."""

    floor: Floor | None = None
    last: Floor | None = None
    lagging: Floor | None = None
    claimed: int = 0
    marks: deque[tuple[int, Floor]] = field(default_factory=deque)
    empty: bool = False
    tried: bool = False
    skipped: bool = False

    def is_below(self, floor: Floor) -> bool:
        return self.floor is None or self.floor < floor

    def note(self, rows: int, last: Floor) -> None:
        """Record that `rows` more rows were claimed, the furthest at `last`."""
        self.claimed += rows
        self.last = last if self.last is None else max(self.last, last)
        self.marks.append((self.claimed, self.last))
        while self.marks and self.marks[0][0] <= self.claimed - LAG_ROWS:
            self.lagging = self.marks.popleft()[1]

    def move(self, recent: Floor, *, reached: Floor | None) -> None:
        """Raise the floor to the row that was claimed 1,000 rows or 2 s ago, whichever is later.

        If the lane wasn't exhausted, never move past the last row that this claim reached, even if
        an earlier claim got further, because more due rows follow that row.
        """
        target = recent if self.lagging is None else max(recent, self.lagging)
        if reached is not None:
            target = min(target, reached)
        self.floor = target if self.floor is None else max(self.floor, target)


class LaneTracker:
    """One claimer's lanes and their floors. Not thread-safe."""

    def __init__(
        self, queues: Iterable[str], *, lag: timedelta = DEFAULTS.late_commit_window
    ) -> None:
        self._queues = dict.fromkeys(queues)
        self._lag = lag
        self._lanes = {(q, p): _LaneState() for p in PRIORITIES for q in self._queues}
        self._turn = 0
        self._claims = 0
        self._scan_next = 0

    def add(self, queues: Iterable[str]) -> None:
        """Serve these queues too; the others keep their floors."""
        for queue in queues:
            if queue not in self._queues:
                self._queues[queue] = None
                for priority in PRIORITIES:
                    self._lanes[queue, priority] = _LaneState()

    def forget(self, queue: str) -> None:
        """Drop a queue and its floors."""
        if queue in self._queues:
            del self._queues[queue]
            for priority in PRIORITIES:
                del self._lanes[queue, priority]

    def next_lanes(
        self, *, woken: bool = False, among: Collection[str] | None = None
    ) -> list[Lane]:
        """Return the next claim's lanes, ordered by priority, with the queues taking turns.

        Lanes that were found empty are skipped, except in every fourth claim. `woken`, which is set
        after a wakeup and before going to sleep, brings them all back until they are exhausted
        again. `among` limits the lanes, and the cost of computing them, to these queues.
        """
        queues = list(self._queues if among is None else filter(self._queues.__contains__, among))
        if woken:
            for place in ((queue, priority) for queue in queues for priority in PRIORITIES):
                self._lanes[place].empty = False
        every = self._claims % PROBE_EMPTY_EVERY == 0
        turn = self._turn % max(len(queues), 1)
        turned = queues[turn:] + queues[:turn]
        self._claims += 1
        self._turn = (self._turn + 1) % max(len(self._queues), 1)
        return [
            Lane(queue, priority, self._lanes[queue, priority].floor)
            for priority in PRIORITIES
            for queue in turned
            if every or not self._lanes[queue, priority].empty
        ]

    def record_claim(self, lanes: Sequence[Lane], claims: ClaimResult, *, wanted: int) -> None:
        """Move floors based on the result of a claim on these lanes.

        A job that was returned to its queue keeps its old due time, so it doesn't show how far its
        lane was read. A queue that wasn't fully scanned, because it's paused or limited, doesn't
        count as exhausted.
        """
        rows: defaultdict[tuple[str, int], list[tuple[datetime, JobId]]] = defaultdict(list)
        for job, _lease, returned, _confirm in claims.jobs:
            if not returned:
                rows[job.queue, job.priority].append((job.run_at, job.id))
        furthest = {place: Floor(*max(there)) for place, there in rows.items()}
        # If a suspect was claimed alone or skipped, there are still due rows.
        whole = claims.found == len(claims.jobs)
        recent = Floor(claims.now - self._lag, JobId(0))
        for lane in lanes:
            place = lane.queue, lane.priority
            if place not in self._lanes:
                continue
            memory = self._lanes[place]
            memory.tried = True
            if lane.floor is not None and memory.is_below(lane.floor):
                # A scan has since lowered the floor, so this claim says nothing about the rows
                # below it.
                continue
            known = whole and claims.skipped_queues.isdisjoint((lane.queue, EVERY_QUEUE))
            exhausted = known and claims.found < wanted
            # False if the claim was full before reaching this lane.
            read = exhausted or place in rows
            if read or not known:
                memory.empty = exhausted and place not in rows
            if place in rows:
                memory.note(len(rows[place]), furthest[place])
            if whole and read:
                memory.move(recent, reached=None if exhausted else furthest[place])

    def has_untried(self, lanes: Sequence[Lane]) -> bool:
        """Return whether any lane is still unread. A claim from zero may hit many dead entries."""
        states = (self._lanes.get((lane.queue, lane.priority)) for lane in lanes)
        return any(state is None or not state.tried for state in states)

    def skip(self, lanes: Sequence[Lane], now: datetime) -> None:
        """Start these lanes at recently due jobs, because a claim took too long.

        A scan finds the rest.
        """
        start = Floor(now - RECENT, JobId(0))
        for lane in lanes:
            memory = self._lanes.get((lane.queue, lane.priority))
            if memory is None:
                continue
            memory.tried = True
            if memory.is_below(start):
                memory.floor = start
                memory.skipped = True

    @property
    def has_skipped(self) -> bool:
        """Return whether skipped lanes are waiting for a scan."""
        return any(memory.skipped for memory in self._lanes.values())

    def next_scan_lanes(self, among: Collection[str] | None = None) -> list[Lane]:
        """Return one queue's lanes to scan from zero. Queues take turns, skipped ones first."""
        known = list(self._queues if among is None else filter(self._queues.__contains__, among))
        skipped = [q for q in known if any(self._lanes[q, p].skipped for p in PRIORITIES)]
        queues = skipped or [q for q in known if any(self._lanes[q, p].floor for p in PRIORITIES)]
        if not queues:
            return []
        queue = queues[self._scan_next % len(queues)]
        self._scan_next += 1
        return [Lane(queue, p) for p in PRIORITIES if self._lanes[queue, p].floor]

    def record_scan(self, lanes: Sequence[Lane], claims: ClaimResult, *, wanted: int) -> None:
        """Keep the floors, unless the scan returned only rows below one of them.

        In that case, there is a whole backlog below the floor, for example from a large transaction
        that committed late. The floor moves back to where the scan ended, so ordinary claims take
        the rest.
        """
        lanes = [lane for lane in lanes if lane.queue in self._queues]
        if claims.found < wanted:
            for lane in lanes:
                self._lanes[lane.queue, lane.priority].skipped = False
            return
        for lane in lanes:
            memory = self._lanes[lane.queue, lane.priority]
            below = [
                at
                for claimed in claims.jobs
                if (claimed.job.queue, claimed.job.priority) == (lane.queue, lane.priority)
                and memory.floor is not None
                and (at := Floor(claimed.job.run_at, claimed.job.id)) < memory.floor
                and not claimed.returned
            ]
            if below:
                self._lanes[lane.queue, lane.priority] = _LaneState(
                    max(below), max(below), tried=True
                )


def scan_delay(took: timedelta, *, processes: int, behind: bool = False) -> timedelta:
    """Return how long to wait before the next scan from zero.

    All processes together may spend 5% of the time on scans. When each of fifty processes spent 5%,
    that added up to more than a whole core. If lanes were skipped (`behind`), the next scan doesn't
    wait, because only a scan can find the due jobs in them.
    """
    if behind:
        return SCAN_AT_LEAST
    return max(SCAN_AT_LEAST, took * SCAN_SHARE * max(processes, 1))


LONGEST_WAIT = 0.1
MAX_PREFETCH = 1000
# A larger claim is hardly cheaper per job, and no job starts while it is in flight.
MAX_CLAIM = 250


def prefetch_limit(rate: float) -> int:
    """Return how many jobs may wait for a slot, given the recent starts per second."""
    return min(MAX_PREFETCH, int(rate * LONGEST_WAIT))


def refill_at(allowed: int) -> int:
    """Return the number of waiting jobs at which to claim more.

    This is half the limit, or the limit minus one claim's worth of jobs if that is more.
    """
    return max(allowed // 2, allowed - MAX_CLAIM)


class Rate:
    """Recent events per second; the last second has half the weight."""

    def __init__(self) -> None:
        self._value = 0.0
        self._count = 0
        self._since = 0.0

    def note(self, count: int, now: float) -> None:
        self._count += count
        passed = now - self._since
        if passed >= 0.1:
            weight = 0.5 ** min(passed, 30.0)
            self._value = self._value * weight + self._count / passed * (1 - weight)
            self._count, self._since = 0, now

    def per_second(self, now: float) -> float:
        self.note(0, now)
        return self._value
