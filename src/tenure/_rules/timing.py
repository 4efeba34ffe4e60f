"""The ticks of a timing, and a timing as a sentence.

When a schedule's ticks are. Pure: no clock; every instant given and answered is UTC.

What reads cron expressions is loaded when the first one is met: a program without any does not
wait for it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from tenure._model.schedule import Timing
from tenure._rules.formatting import interval
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue

# Intervals count from here, so that all who ask find the same ticks.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(seconds=1)


def check(timing: Timing) -> None:
    """Refuse a timing that names no ticks, with what to write instead (InvalidValue)."""
    given = [name for name in ("cron", "every", "at") if getattr(timing, name) is not None]
    if len(given) != 1:
        raise InvalidValue(
            f"a schedule says when by one of cron=, every= and at=, not by {' and '.join(given)}"
            if given
            else 'a schedule says when: give cron="0 3 * * *", every=timedelta(…) or at=datetime(…)'
        )
    if timing.every is not None:
        _check_every(timing.every, timing.zone)
        return
    if timing.at is not None and timing.at.utcoffset() is None:
        raise InvalidValue(f"at={timing.at} has no time zone; write tzinfo=UTC or attach one")

    from tenure._rules.time_zones import zone_named  # noqa: PLC0415 - see above

    zone_named(timing.zone)
    if timing.cron is not None:
        from tenure._rules.cron import read  # noqa: PLC0415 - see above

        read(timing.cron)


def _check_every(every: timedelta, zone: str) -> None:
    if every < SHORTEST:
        raise InvalidValue(
            f"every={every} is closer than a second; make the ticks 1 s apart at least, and let "
            "one job do what several would"
        )
    if every > LONGEST_WAIT:
        raise InvalidValue(f"every={every} is too far; {LONGEST_WAIT.days:,} days is the most")
    if zone != "UTC":
        raise InvalidValue(
            f"an interval counts from 1970 in UTC and knows no zone; leave out {zone!r}, or give "
            "the time of day by cron="
        )


def following(timing: Timing, after: datetime) -> datetime | None:
    """The first tick after an instant, or None if there is none to come."""
    return next(forward(timing, after), None)


def last(timing: Timing, until: datetime) -> datetime | None:
    """The last tick at or before an instant, or None."""
    return next(backward(timing, until), None)


def between(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """The ticks after one instant and up to another, in order. Lazy: a window may hold millions."""
    end = _utc(until)
    return takewhile(lambda tick: tick <= end, forward(timing, after))


def upcoming(timing: Timing, after: datetime, count: int) -> Sequence[datetime]:
    """The next ticks after an instant, at most so many."""
    return list(islice(forward(timing, after), count))


def forward(timing: Timing, after: datetime) -> Iterator[datetime]:
    """All ticks after an instant, in order."""
    after = _utc(after)
    if timing.cron is not None:
        from tenure._rules import cron, time_zones  # noqa: PLC0415 - see above

        return cron.forward(cron.read(timing.cron), time_zones.zone_named(timing.zone), after)
    if timing.every is not None:
        return _intervals(timing.every, (after - EPOCH) // timing.every + 1, 1)
    at = _at(timing)
    return iter([at] if at > after else [])


def backward(timing: Timing, until: datetime) -> Iterator[datetime]:
    """All ticks up to an instant, the last one first."""
    until = _utc(until)
    if timing.cron is not None:
        from tenure._rules import cron, time_zones  # noqa: PLC0415 - see above

        return cron.backward(cron.read(timing.cron), time_zones.zone_named(timing.zone), until)
    if timing.every is not None:
        return _intervals(timing.every, (until - EPOCH) // timing.every, -1)
    at = _at(timing)
    return iter([at] if at <= until else [])


def _intervals(every: timedelta, number: int, step: int) -> Iterator[datetime]:
    """The ticks of an interval from the one of this number on."""
    while (tick := _nth(every, number)) is not None:
        yield tick
        number += step


def _nth(every: timedelta, number: int) -> datetime | None:
    """The tick of this number, if the calendar goes so far."""
    try:
        return EPOCH + number * every
    except OverflowError:
        return None


def _at(timing: Timing) -> datetime:
    if timing.at is None:
        raise InvalidValue("a schedule says when by one of cron=, every= and at=; this has none")
    return _utc(timing.at)


def _utc(instant: datetime) -> datetime:
    """The instant in UTC. One without a zone would be read in this machine's."""
    if instant.utcoffset() is None:
        raise InvalidValue(f"{instant} has no time zone; write tzinfo=UTC or attach one")
    return instant.astimezone(UTC)


def describe_timing(timing: Timing) -> str:
    """When its ticks are: `At 03:00 every day`, `Every 5 minutes`, `Once`."""
    if timing.cron is not None:
        from tenure._rules import cron  # noqa: PLC0415 - who has none need not load it

        return cron.read(timing.cron).rule.explain()
    return "Once" if timing.every is None else f"Every {interval(timing.every)}"
