"""Collect metrics from the database.

Counters are built from per-minute counts. They cover attempts since this process started, by queue
and task. A counter never decreases, even if data is reaggregated or pruned. After a restart, it
starts at zero, which Prometheus handles.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from tenure.admin import BOUNDS, Admin
from tenure.errors import TenureError, Unreachable
from tenure.server.cache import SingleFlightCache
from tenure.types import (
    AttemptOutcome,
    Depth,
    LateWork,
    QueueRow,
    Storage,
    Total,
    Totals,
    WorkerRow,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime


# How many (queue, task) pairs have their own labels. The others share one pair of labels.
MOST = 200
OTHERS = ("(others)", "(others)")
_BUCKETS = len(BOUNDS) + 1
Pair = tuple[str, str]
_ZERO: Sequence[float] = (0,) * (len(AttemptOutcome) + 2 + 2 * _BUCKETS)


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters for one task in one queue."""

    outcomes: Mapping[AttemptOutcome, int]
    waits: Sequence[int]
    wait_sum: float
    runs: Sequence[int]
    run_sum: float


class CounterTable:
    """All counters. Settled minutes are added once, open minutes every time."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._settled: dict[Pair, Sequence[float]] = {}
        self._shown: dict[Pair, Sequence[float]] = {}
        self._cut: set[Pair] = set()
        self.since: datetime | None = None

    def add(self, totals: Totals) -> None:
        """Add new attempts.

        The first call only registers queues and tasks, with counters at zero, so that Prometheus
        sees the next attempt as an increase.
        """
        if self.since is None:
            for total in totals.settled:
                self._shown.setdefault(self._place(total), _ZERO)
        else:
            self._settled = _sum(self._settled, self._by_place(totals.settled))
            now = _sum(self._settled, self._by_place(totals.open))
            # After a clock has been set back, the counts may be lower for a while.
            for place, cells in now.items():
                before = self._shown.get(place, _ZERO)
                self._shown[place] = [max(pair) for pair in zip(cells, before, strict=True)]
        self.since = totals.settled_to

    def _by_place(self, totals: Iterable[Total]) -> dict[Pair, Sequence[float]]:
        sums: dict[Pair, Sequence[float]] = {}
        for total in totals:
            _add(sums, self._place(total), _cells(total))
        return sums

    def _place(self, total: Total) -> Pair:
        """Choose a pair's labels. They never change."""
        pair = total.queue, total.task
        if pair in self._shown:
            return pair
        if pair not in self._cut and len(self._shown) < self._most:
            self._shown[pair] = _ZERO
            return pair
        if len(self._cut) < self._most * 100:
            self._cut.add(pair)
        return OTHERS

    @property
    def cut(self) -> int:
        """The number of pairs without their own labels."""
        return len(self._cut)

    def __iter__(self) -> Iterator[tuple[Pair, Counted]]:
        for pair, cells in self._shown.items():
            yield pair, _counted(cells)


def _cells(total: Total) -> Sequence[float]:
    """Return all numbers in one list, for summing."""
    return [
        *(total.outcomes[ending] for ending in AttemptOutcome),
        *(total.wait.sum.total_seconds(), total.run.sum.total_seconds()),
        *total.wait.buckets,
        *total.run.buckets,
    ]


def _counted(cells: Sequence[float]) -> Counted:
    numbers = list(cells)
    ends, rest = numbers[: len(AttemptOutcome)], numbers[len(AttemptOutcome) :]
    waits, runs = rest[2 : 2 + _BUCKETS], rest[2 + _BUCKETS :]
    return Counted(
        {ending: int(count) for ending, count in zip(AttemptOutcome, ends, strict=True)},
        [int(count) for count in waits],
        rest[0],
        [int(count) for count in runs],
        rest[1],
    )


def _sum(
    one: Mapping[Pair, Sequence[float]], other: Mapping[Pair, Sequence[float]]
) -> dict[Pair, Sequence[float]]:
    both = dict(one)
    for place, cells in other.items():
        _add(both, place, cells)
    return both


def _add(sums: dict[Pair, Sequence[float]], place: Pair, cells: Sequence[float]) -> None:
    before = sums.get(place, _ZERO)
    sums[place] = [a + b for a, b in zip(before, cells, strict=True)]


EVERY = 5.0
_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of one collection. A part is None if the database didn't respond to its query."""

    began_at: float
    took: float
    answered: Mapping[str, bool] = field(default_factory=dict)
    depths: Sequence[Depth] | None = None
    queues: Sequence[QueueRow] | None = None
    workers: Sequence[WorkerRow] | None = None
    lateness: LateWork | None = None
    storage: Storage | None = None
    counts_age: timedelta | None = None

    @property
    def up(self) -> bool:
        """Whether the database responded at all."""
        return any(self.answered.values())


class Collector:
    """Collects a new snapshot when the last one is too old."""

    def __init__(self, admin: Admin, *, every: float = EVERY) -> None:
        self._admin = admin
        self._shared = SingleFlightCache(self._round, fresh=every)
        self.counters: CounterTable = CounterTable()
        self.done: dict[bool, int] = {True: 0, False: 0}

    async def latest(self) -> Snapshot:
        """Return a fresh snapshot. Concurrent callers share one collection."""
        return await self._shared.get()

    async def _round(self) -> Snapshot:
        snapshot = await self._collect()
        self.done[all(snapshot.answered.values())] += 1
        return snapshot

    async def _collect(self) -> Snapshot:
        began_at = monotonic()
        queries: Mapping[str, Callable[[], Awaitable[Any]]] = {
            "depths": self._admin.queues.adepths,
            "queues": self._admin.queues.alist,
            "workers": self._admin.workers.alist,
            "lateness": self._admin.alateness,
            "storage": self._admin.astorage,
            "totals": self._totals,
        }
        answers: dict[str, Any] = {}
        answered = dict.fromkeys(queries, False)
        for part, query in queries.items():
            try:
                async with asyncio.timeout(_WITHIN):
                    answers[part] = await query()
            except (TimeoutError, TenureError) as error:
                if not answers or isinstance(error, Unreachable):
                    # The database is down. More queries would make the scraper time out.
                    break
            else:
                answered[part] = True
        counts_age = answers.pop("totals", None)
        took = monotonic() - began_at
        return Snapshot(began_at, took, answered, counts_age=counts_age, **answers)

    async def _totals(self) -> timedelta | None:
        totals = await self._admin.atotals(self.counters.since)
        self.counters.add(totals)
        return totals.counts_age
