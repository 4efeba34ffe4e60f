"""Counts, durations, queue depths, throughput and totals.

How an installation fares, for whoever watches it: what ended in all, what is late, how the
database keeps its tables.

What people look at beside jobs: leases that are held, queues minute by minute, what schedules
came to lately, pages of the audit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId
from tenure._model.schedule import TickOutcome, TickReason

# What is counted exactly; beyond it there are more, and nobody counts how many.
COUNTED = 10_000
# How far back a group of dead letters says when they ended.
HOURS = 24


@dataclass(frozen=True, slots=True)
class Count:
    """A count that is exact, or of which it is only known that there are `more`."""

    value: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.more else ''}"


@dataclass(frozen=True, slots=True)
class DurationStats:
    """How long something took, of all that were counted: `buckets` by the bounds of
    `tenure.admin.BOUNDS`, the sum exact, the quantiles estimated from the buckets."""

    count: int
    sum: timedelta
    buckets: Sequence[int]
    p50: timedelta | None
    p95: timedelta | None
    p99: timedelta | None


@dataclass(frozen=True, slots=True)
class StatsBucket:
    """The attempts that ended from `since` up to `until`: how, how long after they were due they
    were claimed, how long they ran."""

    since: datetime
    until: datetime
    outcomes: Mapping[AttemptOutcome, int]
    wait: DurationStats
    run: DurationStats


@dataclass(frozen=True, slots=True)
class Stats:
    """What ended over a time, whole and step by step. After `counted_until` nothing is counted."""

    whole: StatsBucket
    steps: Sequence[StatsBucket]
    counted_until: datetime | None


@dataclass(frozen=True, slots=True)
class Depth:
    """How much there is in a queue: due, for later, running, held, and among the dead letters."""

    queue: str
    due: Count
    scheduled: Count
    running: Count
    held: Count
    failed: Count
    oldest_due_age: timedelta | None


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Dead letters of one task with one error; `sample` is the one that ended last. `hours` says
    how many of the newest 250 ended in each of the last 24 hours, the oldest first."""

    task: str
    signature: str | None
    count: Count
    oldest_at: datetime
    newest_at: datetime
    hours: Sequence[int]
    sample: JobId
    error_type: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class ListenCheck:
    """How much later one connection hears what another notifies: None if it does not; and where a
    pooler stands before the server it is not tried."""

    lag: timedelta | None = None
    behind_pooler: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """What ended of one task in one queue: how, how long it had waited, how long it ran."""

    queue: str
    task: str
    outcomes: Mapping[AttemptOutcome, int]
    wait: DurationStats
    run: DurationStats


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
class LateWork:
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


@dataclass(frozen=True, slots=True)
class QueueThroughput:
    """How many attempts of a queue completed and failed, minute by minute."""

    completed: Sequence[int]
    failed: Sequence[int]


@dataclass(frozen=True, slots=True)
class Throughput:
    """The pace of each queue over the minutes from `since` up to `until`. After `counted_until`
    nothing is counted."""

    since: datetime
    until: datetime
    counted_until: datetime | None
    queues: Mapping[str, QueueThroughput]
