"""Collect the numbers of the database now and then.

Counters from counts per minute: what ended since this process began, by queue and task.

A counter only grows, whatever is folded anew or pruned behind it; one that begins at zero is a new
process to Prometheus, which knows how to read that.
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


# So many queues and tasks have labels of their own, the first that came; the others share these.
MOST = 200
OTHERS = ("(others)", "(others)")
_BUCKETS = len(BOUNDS) + 1
Pair = tuple[str, str]
_ZERO: Sequence[float] = (0,) * (len(AttemptOutcome) + 2 + 2 * _BUCKETS)


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one task in one queue."""

    outcomes: Mapping[AttemptOutcome, int]
    waits: Sequence[int]
    wait_sum: float
    runs: Sequence[int]
    run_sum: float


class CounterTable:
    """All of them. What is settled is added once; what is open is added anew each time."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._settled: dict[Pair, Sequence[float]] = {}
        self._shown: dict[Pair, Sequence[float]] = {}
        self._cut: set[Pair] = set()
        self.since: datetime | None = None

    def add(self, totals: Totals) -> None:
        """Take in what ended since. The first time tells only which queues and tasks there are:
        they begin at zero, so that their next attempt is seen as one more."""
        if self.since is None:
            for total in totals.settled:
                self._shown.setdefault(self._place(total), _ZERO)
        else:
            self._settled = _sum(self._settled, self._by_place(totals.settled))
            now = _sum(self._settled, self._by_place(totals.open))
            # After a clock was set back less may be folded for a while.
            for place, cells in now.items():
                before = self._shown.get(place, _ZERO)
                self._shown[place] = [max(pair) for pair in zip(cells, before, strict=True)]
        self.since = totals.settled_to

    def _by_place(self, totals: Iterable[Total]) -> dict[Pair, Sequence[float]]:
        found: dict[Pair, Sequence[float]] = {}
        for total in totals:
            _add(found, self._place(total), _cells(total))
        return found

    def _place(self, total: Total) -> Pair:
        """Under which labels it is counted; once under these, always."""
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
        """How many have no labels of their own."""
        return len(self._cut)

    def __iter__(self) -> Iterator[tuple[Pair, Counted]]:
        for pair, cells in self._shown.items():
            yield pair, _counted(cells)


def _cells(total: Total) -> Sequence[float]:
    """All its numbers in a row, to be added to others'."""
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
    """What one round came to; what was not answered is None."""

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
        """Whether the database answered at all."""
        return any(self.answered.values())


class Collector:
    """The last round, and the next when it is time."""

    def __init__(self, admin: Admin, *, every: float = EVERY) -> None:
        self._admin = admin
        self._shared = SingleFlightCache(self._round, fresh=every)
        self.counters: CounterTable = CounterTable()
        self.done: dict[bool, int] = {True: 0, False: 0}

    async def latest(self) -> Snapshot:
        """A round that is fresh. Whoever comes while one is under way has its answer."""
        return await self._shared.get()

    async def _round(self) -> Snapshot:
        found = await self._ask()
        self.done[all(found.answered.values())] += 1
        return found

    async def _ask(self) -> Snapshot:
        began_at = monotonic()
        questions: Mapping[str, Callable[[], Awaitable[Any]]] = {
            "depths": self._admin.queues.adepths,
            "queues": self._admin.queues.alist,
            "workers": self._admin.workers.alist,
            "lateness": self._admin.alateness,
            "storage": self._admin.astorage,
            "totals": self._totals,
        }
        answers: dict[str, Any] = {}
        answered = dict.fromkeys(questions, False)
        for part, ask in questions.items():
            try:
                async with asyncio.timeout(_WITHIN):
                    answers[part] = await ask()
            except (TimeoutError, TenureError) as error:
                if not answers or isinstance(error, Unreachable):
                    # It is away: the others would wait as long, and the scraper does not.
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
