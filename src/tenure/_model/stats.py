"""Counts for people and autoscalers: what ended when, how much waits, how dead letters group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.ending import Ending
from tenure._model.ids import JobId

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
class Spread:
    """How long something took, of all that were counted: `buckets` by the bounds of
    `tenure.admin.BOUNDS`, the sum exact, the quantiles estimated from the buckets."""

    count: int
    sum: timedelta
    buckets: Sequence[int]
    p50: timedelta | None
    p95: timedelta | None
    p99: timedelta | None


@dataclass(frozen=True, slots=True)
class Tally:
    """The attempts that ended from `since` up to `until`: how, how long after they were due they
    were claimed, how long they ran."""

    since: datetime
    until: datetime
    outcomes: Mapping[Ending, int]
    wait: Spread
    run: Spread


@dataclass(frozen=True, slots=True)
class Stats:
    """What ended over a time, whole and step by step. After `folded_to` nothing is counted yet."""

    whole: Tally
    steps: Sequence[Tally]
    folded_to: datetime | None


@dataclass(frozen=True, slots=True)
class Depth:
    """How much there is in a queue: due, for later, running, held, and among the dead letters."""

    queue: str
    due: Count
    later: Count
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
