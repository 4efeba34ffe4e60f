"""What is asked of the counts per minute, and how they are put together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from tenure._model.ending import Ending
from tenure._model.stats import Spread, Stats, Tally
from tenure._rules.folding import MINUTE
from tenure._rules.histograms import BUCKETS, added, quantile
from tenure.errors import InvalidValue

LONGEST = timedelta(days=366)
MOST_STEPS = 1500
_EMPTY = (0,) * BUCKETS


@dataclass(frozen=True, slots=True)
class Span:
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


def span(now: datetime, since: datetime | None, until: datetime | None, step: timedelta) -> Span:
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
    return Span(since, until, step)


def stats(asked: Span, rows: Sequence[Mapping[str, Any]], folded_to: datetime | None) -> Stats:
    """The answer, with a tally for each step, also where nothing ended."""
    by_step = {row["since"]: row for row in rows}
    steps = [_tally(since, until, by_step.get(since)) for since, until in asked.steps()]
    return Stats(_whole(asked, steps), steps, folded_to)


def _tally(since: datetime, until: datetime, row: Mapping[str, Any] | None) -> Tally:
    if row is None:
        return Tally(since, until, dict.fromkeys(Ending, 0), spread(_EMPTY), spread(_EMPTY))
    return Tally(
        since,
        until,
        {ending: int(row[ending]) for ending in Ending},
        spread(row["waits"], timedelta(seconds=row["wait_sum"])),
        spread(row["runs"], timedelta(seconds=row["run_sum"])),
    )


def _whole(asked: Span, steps: Sequence[Tally]) -> Tally:
    return Tally(
        asked.since,
        asked.until,
        {ending: sum(step.outcomes[ending] for step in steps) for ending in Ending},
        _joined([step.wait for step in steps]),
        _joined([step.run for step in steps]),
    )


def _joined(spreads: Sequence[Spread]) -> Spread:
    buckets = reduce(added, (spread.buckets for spread in spreads))
    return spread(buckets, sum((spread.sum for spread in spreads), timedelta(0)))


def spread(buckets: Sequence[int], total: timedelta = timedelta(0)) -> Spread:
    """How long what is counted in these buckets took."""
    counts = tuple(int(count) for count in buckets)
    p50, p95, p99 = (_seconds(quantile(counts, share)) for share in (0.5, 0.95, 0.99))
    return Spread(sum(counts), total, counts, p50, p95, p99)


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
