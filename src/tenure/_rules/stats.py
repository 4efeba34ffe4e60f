"""Rollups, histograms and totals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from tenure._model.attempt import AttemptOutcome
from tenure._model.stats import DurationStats, Stats, StatsBucket, Total, Totals
from tenure.errors import InvalidValue

# Upper bounds in seconds. A bucket holds values from the previous bound up to, but not including,
# its own. The last one holds the rest. Counts are stored by position, so never change a bound.
BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
BUCKETS = len(BOUNDS) + 1


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """Estimate the duration that this share of values is below, assuming evenly filled buckets."""
    rank = share * sum(buckets)
    below = 0
    lower = 0.0
    for bound, count in zip(BOUNDS, buckets, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below += count
        lower = bound
    return lower if below < sum(buckets) else None


def added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RollupProgress:
    """Minutes before `final_to` are final. Those up to `marked_to` are refolded after the mark."""

    final_to: datetime
    marked_to: datetime
    counted_until: datetime


def moved(
    folding: RollupProgress,
    *,
    closed_to: datetime,
    folded: datetime | None,
    whole: bool,
    again: datetime | None,
) -> tuple[RollupProgress, bool]:
    """Return the progress after folding `folded` and, if `whole`, `again`.

    Also return whether to mark.
    """
    folding = replace(folding, counted_until=closed_to if folded is None else folded + MINUTE)
    if whole:
        final_to = folding.marked_to if again is None else again + MINUTE
        folding = replace(folding, final_to=final_to)
    if folding.final_to < folding.marked_to or folding.marked_to == folding.counted_until:
        return folding, False
    return replace(folding, marked_to=folding.counted_until), True


LONGEST = timedelta(days=366)
MOST_STEPS = 1500
_EMPTY = (0,) * BUCKETS


@dataclass(frozen=True, slots=True)
class StatsSpan:
    """A period in whole minutes, divided into steps. The last step may be shorter."""

    since: datetime
    until: datetime
    step: timedelta

    def steps(self) -> Iterator[tuple[datetime, datetime]]:
        at = self.since
        while at < self.until:
            yield at, min(at + self.step, self.until)
            at += self.step


def span(
    now: datetime, since: datetime | None, until: datetime | None, step: timedelta
) -> StatsSpan:
    """Return the period in whole minutes (default: the hour up to the last whole minute)."""
    until = _minute(now) if until is None else until
    since = until - timedelta(hours=1) if since is None else since
    if since.tzinfo is None or until.tzinfo is None:
        raise InvalidValue("since and until must have a time zone; write datetime.now(UTC)")
    if not now - LONGEST <= since < until <= now + LONGEST:
        raise InvalidValue(
            f"since must be before until, both within {LONGEST.days} days of today, got {since} "
            f"to {until}"
        )
    if not MINUTE <= step <= LONGEST or step % MINUTE:
        raise InvalidValue(f"step must be whole minutes, at least one, got {step}")
    since, until = _minute(since), _minute(until + MINUTE - timedelta(microseconds=1))
    if -(-(until - since) // step) > MOST_STEPS:
        raise InvalidValue(
            f"from {since} to {until} must be at most {MOST_STEPS:,} steps, got steps of {step}; "
            "take longer steps"
        )
    return StatsSpan(since, until, step)


def stats(
    period: StatsSpan, rows: Sequence[Mapping[str, Any]], counted_until: datetime | None
) -> Stats:
    """Return the statistics, with a bucket for each step, even if empty."""
    by_step = {row["since"]: row for row in rows}
    steps = [_tally(since, until, by_step.get(since)) for since, until in period.steps()]
    return Stats(_whole(period, steps), steps, counted_until)


def _tally(since: datetime, until: datetime, row: Mapping[str, Any] | None) -> StatsBucket:
    if row is None:
        return StatsBucket(
            since, until, dict.fromkeys(AttemptOutcome, 0), spread(_EMPTY), spread(_EMPTY)
        )
    return StatsBucket(
        since,
        until,
        {ending: int(row[ending]) for ending in AttemptOutcome},
        spread(row["waits"], timedelta(seconds=row["wait_sum"])),
        spread(row["runs"], timedelta(seconds=row["run_sum"])),
    )


def _whole(period: StatsSpan, steps: Sequence[StatsBucket]) -> StatsBucket:
    return StatsBucket(
        period.since,
        period.until,
        {ending: sum(step.outcomes[ending] for step in steps) for ending in AttemptOutcome},
        _joined([step.wait for step in steps]),
        _joined([step.run for step in steps]),
    )


def _joined(spreads: Sequence[DurationStats]) -> DurationStats:
    buckets = reduce(added, (spread.buckets for spread in spreads))
    return spread(buckets, sum((spread.sum for spread in spreads), timedelta(0)))


def spread(buckets: Sequence[int], total: timedelta = timedelta(0)) -> DurationStats:
    counts = tuple(int(count) for count in buckets)
    p50, p95, p99 = (_seconds(quantile(counts, share)) for share in (0.5, 0.95, 0.99))
    return DurationStats(sum(counts), total, counts, p50, p95, p99)


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


# A minute that isn't final by then is added as is, without later commits. Otherwise one
# transaction left open for a day would make each scrape read a day of minutes.
_PATIENCE = timedelta(hours=1)
# The most to read at one time after a long pause.
_STRETCH = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class TotalsSpan:
    """The period to read; everything before `settled_to` is final."""

    since: datetime
    settled_to: datetime
    until: datetime
    counts_age: timedelta | None


def totals_span(
    now: datetime,
    since: datetime | None,
    *,
    counted_until: datetime | None,
    final_to: datetime | None,
) -> TotalsSpan:
    """Return the minutes to read. Without `since`, read the last hour to learn queues and tasks."""
    if counted_until is None:
        at = since or now.replace(second=0, microsecond=0)
        return TotalsSpan(at, at, at, None)
    age = now - counted_until
    if since is None:
        return TotalsSpan(counted_until - _PATIENCE, counted_until, counted_until, age)
    until = max(since, min(counted_until, since + _STRETCH))
    final = (
        counted_until - _PATIENCE if final_to is None else max(final_to, counted_until - _PATIENCE)
    )
    return TotalsSpan(since, max(since, min(final, until)), until, age)


def totals(period: TotalsSpan, rows: Sequence[Mapping[str, Any]]) -> Totals:
    """Return the totals, from one row per queue, task and part."""
    return Totals(
        period.settled_to,
        [_total(row) for row in rows if row["settled"]],
        [_total(row) for row in rows if not row["settled"]],
        period.counts_age,
    )


def _total(row: Mapping[str, Any]) -> Total:
    return Total(
        row["queue"],
        row["task"],
        {ending: int(row[ending]) for ending in AttemptOutcome},
        spread(row["waits"], timedelta(seconds=row["wait_sum"])),
        spread(row["runs"], timedelta(seconds=row["run_sum"])),
    )
