"""Rollups, histograms, counters and totals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from tenure._model.attempt import AttemptOutcome
from tenure._model.stats import DurationStats, Stats, StatsBucket, Total, Totals
from tenure.errors import InvalidValue

# Seconds. A bucket holds what is below its bound and not below the one before; the last one holds
# the rest. Counts are stored by their place here: never change a bound.
BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
BUCKETS = len(BOUNDS) + 1


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """The seconds that this share of what was counted stayed below, as if each bucket were filled
    evenly; None if nothing was counted. Beyond the last bound it is that bound."""
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
    """Two counts as one."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RollupProgress:
    """Before `final_to` minutes are whole. Up to `marked_to` they are folded once more when all
    that was running at the mark has ended; up to `counted_until` they wait for a mark."""

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
    """Where folding is after a pass, and whether a mark is to be taken anew.

    The pass folded the minute `folded` for the first time, and, if what the mark waits for is
    `whole`, the minute `again` for the last time; None: nothing was left to fold.
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
    """A time in whole minutes, in steps of whole minutes; the last step may be short."""

    since: datetime
    until: datetime
    step: timedelta

    def steps(self) -> Iterator[tuple[datetime, datetime]]:
        """Each step's beginning and end."""
        at = self.since
        while at < self.until:
            yield at, min(at + self.step, self.until)
            at += self.step


def span(
    now: datetime, since: datetime | None, until: datetime | None, step: timedelta
) -> StatsSpan:
    """What is asked for, widened to whole minutes: by default the hour up to the last whole one."""
    until = _minute(now) if until is None else until
    since = until - timedelta(hours=1) if since is None else since
    if since.tzinfo is None or until.tzinfo is None:
        raise InvalidValue("since and until need a timezone, as in datetime.now(UTC)")
    if not now - LONGEST <= since < until <= now + LONGEST:
        raise InvalidValue(
            f"from {since} to {until} cannot be: it ends after it begins, within "
            f"{LONGEST.days} days of today"
        )
    if not MINUTE <= step <= LONGEST or step % MINUTE:
        raise InvalidValue(f"a step of {step} cannot be: it is whole minutes, one at the least")
    since, until = _minute(since), _minute(until + MINUTE - timedelta(microseconds=1))
    if -(-(until - since) // step) > MOST_STEPS:
        raise InvalidValue(
            f"from {since} to {until} in steps of {step} are more than {MOST_STEPS:,}; "
            "take longer steps"
        )
    return StatsSpan(since, until, step)


def stats(
    asked: StatsSpan, rows: Sequence[Mapping[str, Any]], counted_until: datetime | None
) -> Stats:
    """The answer, with a tally for each step, also where nothing ended."""
    by_step = {row["since"]: row for row in rows}
    steps = [_tally(since, until, by_step.get(since)) for since, until in asked.steps()]
    return Stats(_whole(asked, steps), steps, counted_until)


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


def _whole(asked: StatsSpan, steps: Sequence[StatsBucket]) -> StatsBucket:
    return StatsBucket(
        asked.since,
        asked.until,
        {ending: sum(step.outcomes[ending] for step in steps) for ending in AttemptOutcome},
        _joined([step.wait for step in steps]),
        _joined([step.run for step in steps]),
    )


def _joined(spreads: Sequence[DurationStats]) -> DurationStats:
    buckets = reduce(added, (spread.buckets for spread in spreads))
    return spread(buckets, sum((spread.sum for spread in spreads), timedelta(0)))


def spread(buckets: Sequence[int], total: timedelta = timedelta(0)) -> DurationStats:
    """How long what is counted in these buckets took."""
    counts = tuple(int(count) for count in buckets)
    p50, p95, p99 = (_seconds(quantile(counts, share)) for share in (0.5, 0.95, 0.99))
    return DurationStats(sum(counts), total, counts, p50, p95, p99)


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


# A minute that is not final by then is added as it is: what commits later is left out, and who
# watches need not read a day of minutes each time because one transaction is open for a day.
_PATIENCE = timedelta(hours=1)
# What is read at once, by who has not asked for long.
_STRETCH = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class TotalsSpan:
    """What is asked for; before `settled_to` it is added for good."""

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
    """The minutes to read. Without a beginning the last hour: it tells which queues and tasks there
    are. Where nothing was ever folded, all that comes is to be added."""
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


def totals(asked: TotalsSpan, rows: Sequence[Mapping[str, Any]]) -> Totals:
    """The answer, from a row for each queue and task and part."""
    return Totals(
        asked.settled_to,
        [_total(row) for row in rows if row["settled"]],
        [_total(row) for row in rows if not row["settled"]],
        asked.counts_age,
    )


def _total(row: Mapping[str, Any]) -> Total:
    return Total(
        row["queue"],
        row["task"],
        {ending: int(row[ending]) for ending in AttemptOutcome},
        spread(row["waits"], timedelta(seconds=row["wait_sum"])),
        spread(row["runs"], timedelta(seconds=row["run_sum"])),
    )
