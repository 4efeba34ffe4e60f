"""How an installation fares, for whoever watches it: what ended in all, what is late, how the
database keeps its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.ending import Ending
from tenure._model.schedule import TickOutcome, TickReason
from tenure._model.stats import Count, Spread


@dataclass(frozen=True, slots=True)
class Hearing:
    """How much later one connection hears what another notifies: None if it does not; and where a
    pooler stands before the server it is not tried."""

    lag: timedelta | None = None
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """What ended of one task in one queue: how, how long it had waited, how long it ran."""

    queue: str
    task: str
    outcomes: Mapping[Ending, int]
    wait: Spread
    run: Spread


@dataclass(frozen=True, slots=True)
class Totals:
    """What ended from an instant on, in two parts. `settled` is what ended before `settled_to`,
    and is counted once: ask from there the next time. `open` ended since, and may still grow."""

    settled_to: datetime
    settled: Sequence[Total]
    open: Sequence[Total]
    counts_age: timedelta | None


@dataclass(frozen=True, slots=True)
class TickCount:
    """How many ticks came to this lately."""

    outcome: TickOutcome
    reason: TickReason | None
    count: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """What should have been done, and was not: for how long the first of each kind is due, and how
    many there are. `ticks` are those of the last hour, of 1,000 schedules at the most."""

    lease: timedelta
    schedule: timedelta
    schedules: Count
    operation: timedelta
    operations: Count
    items_left: int
    ticks: Sequence[TickCount]


@dataclass(frozen=True, slots=True)
class TableSize:
    """One table of ours, its indexes and partitions with it; rows as the server estimates them."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Storage:
    """How the database keeps our tables. `horizon` is by how many transactions the oldest one lags
    from which on dead rows must be kept; `oldest` is its age, where our role may see it."""

    tables: Sequence[TableSize]
    horizon: int
    oldest: timedelta | None
