"""Counts, durations, queue depths, throughput and totals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId
from tenure._model.schedule import TickOutcome, TickReason

# Counts are exact up to here. Beyond that, a count only shows that there are more.
COUNTED = 10_000
# How many hours back a dead letter group has hourly counts.
HOURS = 24


@dataclass(frozen=True, slots=True)
class Count:
    """An exact number, or a lower bound if there are `more`."""

    value: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.more else ''}"


@dataclass(frozen=True, slots=True)
class DurationStats:
    """Durations in `buckets`. The sum is exact, and the quantiles are estimates."""

    count: int
    sum: timedelta
    buckets: Sequence[int]
    p50: timedelta | None
    p95: timedelta | None
    p99: timedelta | None


@dataclass(frozen=True, slots=True)
class StatsBucket:
    """Attempts that ended from `since` up to `until`: outcomes, queue latency, run time."""

    since: datetime
    until: datetime
    outcomes: Mapping[AttemptOutcome, int]
    wait: DurationStats
    run: DurationStats


@dataclass(frozen=True, slots=True)
class Stats:
    """Attempts that ended in a period. Those after `counted_until` aren't counted yet."""

    whole: StatsBucket
    steps: Sequence[StatsBucket]
    counted_until: datetime | None


@dataclass(frozen=True, slots=True)
class Depth:
    """The number of jobs in a queue: due, due later, running, held, and dead letters."""

    queue: str
    due: Count
    scheduled: Count
    running: Count
    held: Count
    failed: Count
    oldest_due_age: timedelta | None


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Dead letters with the same task and error.

    `hours` covers the newest 250 from the last day.
    """

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
    """A notification's delay between two connections, if it arrives. Not tried behind a pooler."""

    lag: timedelta | None = None
    behind_pooler: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """One task's attempts in one queue: outcomes, queue latency, run time."""

    queue: str
    task: str
    outcomes: Mapping[AttemptOutcome, int]
    wait: DurationStats
    run: DurationStats


@dataclass(frozen=True, slots=True)
class Totals:
    """Attempts since a given time. `settled` is final up to `settled_to`. `open` may still grow."""

    settled_to: datetime
    settled: Sequence[Total]
    open: Sequence[Total]
    counts_age: timedelta | None


@dataclass(frozen=True, slots=True)
class TickCount:
    """The number of recent ticks with this outcome and reason."""

    outcome: TickOutcome
    reason: TickReason | None
    count: int


@dataclass(frozen=True, slots=True)
class LateWork:
    """Overdue work by kind: how many items there are, and how long the oldest has been due."""

    lease: timedelta
    schedule: timedelta
    schedules: Count
    operation: timedelta
    operations: Count
    items_left: int
    ticks: Sequence[TickCount]


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table's size with its indexes and partitions. Row counts are the server's estimates."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Storage:
    """Tenure's table sizes, and how many transactions vacuum is behind (`horizon`)."""

    tables: Sequence[TableSize]
    horizon: int
    oldest: timedelta | None


@dataclass(frozen=True, slots=True)
class QueueThroughput:
    """A queue's completed and failed attempts, minute by minute."""

    completed: Sequence[int]
    failed: Sequence[int]


@dataclass(frozen=True, slots=True)
class Throughput:
    """Each queue's throughput by minute. Attempts after `counted_until` aren't counted yet."""

    since: datetime
    until: datetime
    counted_until: datetime | None
    queues: Mapping[str, QueueThroughput]
