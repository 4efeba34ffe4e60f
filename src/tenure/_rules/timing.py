"""A timing's ticks, and a timing as a sentence. All instants are in UTC."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from tenure._model.schedule import Timing
from tenure._rules.formatting import interval
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue

# Intervals count from here, so all processes compute the same ticks.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(seconds=1)


def check(timing: Timing) -> None:
    given = [name for name in ("cron", "every", "at") if getattr(timing, name) is not None]
    if len(given) != 1:
        raise InvalidValue(
            f"give only one of cron=, every= and at=, got {' and '.join(given)}"
            if given
            else 'give one of cron="0 3 * * *", every=timedelta(…) or at=datetime(…)'
        )
    if timing.every is not None:
        _check_every(timing.every, timing.zone)
        return
    if timing.at is not None and timing.at.utcoffset() is None:
        raise InvalidValue(f"at must have a time zone, got {timing.at}; write tzinfo=UTC")

    from tenure._rules.time_zones import zone_named  # noqa: PLC0415 - see above

    zone_named(timing.zone)
    if timing.cron is not None:
        from tenure._rules.cron import read  # noqa: PLC0415 - see above

        read(timing.cron)


def _check_every(every: timedelta, zone: str) -> None:
    if every < SHORTEST:
        raise InvalidValue(
            f"every must be at least 1 s, got {every}; for more, let one job do the work of several"
        )
    if every > LONGEST_WAIT:
        raise InvalidValue(f"every must be at most {LONGEST_WAIT.days:,} days, got {every}")
    if zone != "UTC":
        raise InvalidValue(
            f"an interval counts from 1970 in UTC and has no zone, got {zone!r}; omit it, or give "
            "the time of day by cron="
        )


def following(timing: Timing, after: datetime) -> datetime | None:
    return next(forward(timing, after), None)


def last(timing: Timing, until: datetime) -> datetime | None:
    return next(backward(timing, until), None)


def between(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """Iterate over the ticks after one instant and up to another.

    It's lazy: there may be millions.
    """
    end = _utc(until)
    return takewhile(lambda tick: tick <= end, forward(timing, after))


def upcoming(timing: Timing, after: datetime, count: int) -> Sequence[datetime]:
    return list(islice(forward(timing, after), count))


def forward(timing: Timing, after: datetime) -> Iterator[datetime]:
    after = _utc(after)
    if timing.cron is not None:
        from tenure._rules import cron, time_zones  # noqa: PLC0415 - see above

        return cron.forward(cron.read(timing.cron), time_zones.zone_named(timing.zone), after)
    if timing.every is not None:
        return _intervals(timing.every, (after - EPOCH) // timing.every + 1, 1)
    at = _at(timing)
    return iter([at] if at > after else [])


def backward(timing: Timing, until: datetime) -> Iterator[datetime]:
    until = _utc(until)
    if timing.cron is not None:
        from tenure._rules import cron, time_zones  # noqa: PLC0415 - see above

        return cron.backward(cron.read(timing.cron), time_zones.zone_named(timing.zone), until)
    if timing.every is not None:
        return _intervals(timing.every, (until - EPOCH) // timing.every, -1)
    at = _at(timing)
    return iter([at] if at <= until else [])


def _intervals(every: timedelta, number: int, step: int) -> Iterator[datetime]:
    while (tick := _nth(every, number)) is not None:
        yield tick
        number += step


def _nth(every: timedelta, number: int) -> datetime | None:
    """Return the tick with this number, if the calendar goes that far."""
    try:
        return EPOCH + number * every
    except OverflowError:
        return None


def _at(timing: Timing) -> datetime:
    if timing.at is None:
        raise InvalidValue("give one of cron=, every= and at=")
    return _utc(timing.at)


def _utc(instant: datetime) -> datetime:
    """Convert to UTC.

    Reject a naive time, which would be interpreted in this machine's time zone.
    """
    if instant.utcoffset() is None:
        raise InvalidValue(f"the instant must have a time zone, got {instant}; write tzinfo=UTC")
    return instant.astimezone(UTC)


def describe_timing(timing: Timing) -> str:
    """Describe when a timing ticks: `At 03:00 every day`, `Every 5 minutes`, `Once`."""
    if timing.cron is not None:
        from tenure._rules import cron  # noqa: PLC0415 - see above

        return cron.read(timing.cron).rule.explain()
    return "Once" if timing.every is None else f"Every {interval(timing.every)}"
