"""Which lanes a claim reads, and how many jobs it takes ahead.

Where a claim looks, in which order, and from which floors on.

A floor is a hint that saves a claim from walking over dead index entries. It lags behind
what was claimed, so that enqueues which commit a little late are still above it; what lies
below all the same is found by scanning a lane from zero, now and then.

A worker that has just started has no floors. Where its first claim cannot walk over all dead
entries in time (a transaction that stays open keeps vacuum from removing them), its lanes begin
at what came due recently, and the next scan, which may take long, finds the rest.

How much may be claimed beyond the free slots, so that they never wait for a round trip.

What is claimed ahead is kept from other workers. So it is no more than what will have begun
within a moment, by the rate of late, and nothing where jobs are long.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
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
# How far back a lane begins that cannot be read from zero in time.
RECENT = timedelta(minutes=1)


@dataclass(slots=True)
class _LaneState:
    """What is known of one lane: its floor, the last row claimed, marks of rows before it.

    `tried`: a claim has asked for it. `skipped`: what lies below its floor was never read.
    """

    floor: Floor | None = None
    last: Floor | None = None
    lagging: Floor | None = None
    claimed: int = 0
    marks: deque[tuple[int, Floor]] = field(default_factory=deque)
    empty: bool = False
    tried: bool = False
    skipped: bool = False

    def is_below(self, floor: Floor) -> bool:
        """Whether the floor is lower than this one."""
        return self.floor is None or self.floor < floor

    def note(self, rows: int, last: Floor) -> None:
        """Remember that `rows` more rows were claimed, the furthest at `last`."""
        self.claimed += rows
        self.last = last if self.last is None else max(self.last, last)
        self.marks.append((self.claimed, self.last))
        while self.marks and self.marks[0][0] <= self.claimed - LAG_ROWS:
            self.lagging = self.marks.popleft()[1]

    def move(self, recent: Floor, *, reached: Floor | None) -> None:
        """Raise the floor: to the row claimed 1,000 rows ago or 2 s ago, whichever is later.

        Unless the lane was exhausted, never past the row that this claim reached: what is due
        behind it is still to come, though a claim before may have been further.
        """
        target = recent if self.lagging is None else max(recent, self.lagging)
        if reached is not None:
            target = min(target, reached)
        self.floor = target if self.floor is None else max(self.floor, target)


class LaneTracker:
    """The lanes of one claimer, and what it has learnt of them.

    `next_lanes` gives the lanes of the next claim, `record_claim` takes its answer. Not safe for
    several
    threads; one claimer has one book.
    """

    def __init__(
        self, queues: Iterable[str], *, lag: timedelta = DEFAULTS.late_commit_window
    ) -> None:
        self._queues = list(dict.fromkeys(queues))
        self._lag = lag
        self._lanes = {(q, p): _LaneState() for p in PRIORITIES for q in self._queues}
        self._turn = 0
        self._claims = 0
        self._scan_next = 0

    def add(self, queues: Iterable[str]) -> None:
        """Serve these queues too; what was learnt of the others stays."""
        for queue in queues:
            if queue not in self._queues:
                self._queues.append(queue)
                self._lanes |= {(queue, p): _LaneState() for p in PRIORITIES}

    def next_lanes(self, *, woken: bool = False) -> list[Lane]:
        """The lanes of the next claim: by priority, within one the queues in turn.

        Lanes that were empty when last exhausted are left out, except at every fourth claim
        and until exhausted again once `woken`: after a wakeup, and before going to sleep.
        """
        if woken:
            for memory in self._lanes.values():
                memory.empty = False
        every = self._claims % PROBE_EMPTY_EVERY == 0
        turned = self._queues[self._turn :] + self._queues[: self._turn]
        self._claims += 1
        self._turn = (self._turn + 1) % max(len(self._queues), 1)
        return [
            Lane(queue, priority, self._lanes[queue, priority].floor)
            for priority in PRIORITIES
            for queue in turned
            if every or not self._lanes[queue, priority].empty
        ]

    def record_claim(self, asked: Sequence[Lane], claims: ClaimResult, *, wanted: int) -> None:
        """Move floors by the answer to a claim that asked for these lanes.

        What was given back keeps its old time and says nothing of how far its lane was
        read; a queue that was not read to its end (paused, limited) was not exhausted.
        """
        rows: defaultdict[tuple[str, int], list[tuple[datetime, JobId]]] = defaultdict(list)
        for job, _lease, returned, _confirm in claims.jobs:
            if not returned:
                rows[job.queue, job.priority].append((job.run_at, job.id))
        furthest = {place: Floor(*max(there)) for place, there in rows.items()}
        # A suspect that came alone, or was passed over, left due rows behind.
        whole = claims.found == len(claims.jobs)
        recent = Floor(claims.now - self._lag, JobId(0))
        for lane in asked:
            place = lane.queue, lane.priority
            if place not in self._lanes:
                continue
            memory = self._lanes[place]
            memory.tried = True
            if lane.floor is not None and memory.is_below(lane.floor):
                # A scan has put it back meanwhile: what was found above says nothing of what is
                # there.
                continue
            known = whole and claims.skipped_queues.isdisjoint((lane.queue, EVERY_QUEUE))
            exhausted = known and claims.found < wanted
            # Neither: the claim was filled before it came to this lane, and says nothing of it.
            read = exhausted or place in rows
            if read or not known:
                memory.empty = exhausted and place not in rows
            if place in rows:
                memory.note(len(rows[place]), furthest[place])
            if whole and read:
                memory.move(recent, reached=None if exhausted else furthest[place])

    def has_untried(self, asked: Sequence[Lane]) -> bool:
        """Whether one of these lanes has not been claimed from yet: nobody knows how many dead
        entries a claim from zero meets there."""
        return any(not self._lanes[lane.queue, lane.priority].tried for lane in asked)

    def skip(self, asked: Sequence[Lane], now: datetime) -> None:
        """Begin these lanes at what came due recently: a claim from further below took too long.
        The older jobs are left to the next scan."""
        start = Floor(now - RECENT, JobId(0))
        for lane in asked:
            memory = self._lanes[lane.queue, lane.priority]
            memory.tried = True
            if memory.is_below(start):
                memory.floor = start
                memory.skipped = True

    @property
    def has_skipped(self) -> bool:
        """Whether lanes are waiting for a scan because claims began above what was never read."""
        return any(memory.skipped for memory in self._lanes.values())

    def next_scan_lanes(self) -> list[Lane]:
        """The lanes to scan from zero next: one queue's that have a floor, queues in turn; those
        with lanes that were skipped before all others."""
        skipped = [q for q in self._queues if any(self._lanes[q, p].skipped for p in PRIORITIES)]
        queues = skipped or [
            q for q in self._queues if any(self._lanes[q, p].floor for p in PRIORITIES)
        ]
        if not queues:
            return []
        queue = queues[self._scan_next % len(queues)]
        self._scan_next += 1
        return [Lane(queue, p) for p in PRIORITIES if self._lanes[queue, p].floor]

    def record_scan(self, asked: Sequence[Lane], claims: ClaimResult, *, wanted: int) -> None:
        """Keep the floors, unless the scan came back full of what lay below one.

        Then a whole backlog lies there (a large transaction that committed late), and that
        floor goes back to where the scan ended, so that ordinary claims take the rest.
        """
        if claims.found < wanted:
            for lane in asked:
                self._lanes[lane.queue, lane.priority].skipped = False
            return
        for lane in asked:
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
    """How long to wait before the next scan from zero.

    One process' share of a common 5 %: fifty processes at 5 % each burnt more than a core. None
    of that while lanes are `behind`, which were skipped: nothing else finds what is due there.
    """
    if behind:
        return SCAN_AT_LEAST
    return max(SCAN_AT_LEAST, took * SCAN_SHARE * max(processes, 1))


LONGEST_WAIT = 0.1
MAX_PREFETCH = 1000
# More in one claim would hardly be cheaper, and while it is on its way nothing comes to run.
MAX_CLAIM = 250


def prefetch_limit(rate: float) -> int:
    """How many jobs may wait for a slot, when so many per second have begun of late."""
    return min(MAX_PREFETCH, int(rate * LONGEST_WAIT))


def refill_at(allowed: int) -> int:
    """How many may still wait when more are asked for: half of them, or all but one claim."""
    return max(allowed // 2, allowed - MAX_CLAIM)


class Rate:
    """How many things happen per second, of late: half of it is of the last second."""

    def __init__(self) -> None:
        self._value = 0.0
        self._count = 0
        self._since = 0.0

    def note(self, count: int, now: float) -> None:
        """Note that so many happened by now."""
        self._count += count
        passed = now - self._since
        if passed >= 0.1:
            weight = 0.5 ** min(passed, 30.0)
            self._value = self._value * weight + self._count / passed * (1 - weight)
            self._count, self._since = 0, now

    def per_second(self, now: float) -> float:
        """The rate, as it has faded by now."""
        self.note(0, now)
        return self._value
