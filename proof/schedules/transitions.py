"""Every change of a clock in the world, found by asking each zone what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

FROM = datetime(2020, 1, 1, tzinfo=UTC)
UNTIL = datetime(2036, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """An instant from which a zone's clocks are `after` ahead of UTC, and not `before` any more."""

    at: datetime
    before: timedelta
    after: timedelta
    zone: str


def transitions(step: timedelta = timedelta(days=3)) -> list[Transition]:
    """The distinct changes of all zones from 2020 to 2035, each in the first zone that has it.

    Looks at every `step`: what comes and goes within one is not seen.
    """
    found: dict[tuple[datetime, timedelta, timedelta], Transition] = {}
    for name in sorted(available_timezones()):
        for one in _of_zone(name, step):
            found.setdefault((one.at, one.before, one.after), one)
    return sorted(found.values())


def _of_zone(name: str, step: timedelta) -> list[Transition]:
    zone = ZoneInfo(name)
    found = []
    here, before = FROM, _offset(zone, FROM)
    while here < UNTIL:
        there = here + step
        after = _offset(zone, there)
        if after != before:
            at = _first(zone, here, there, before)
            found.append(Transition(at, before, after, name))
        here, before = there, after
    return found


def _first(zone: ZoneInfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    """The first minute with another offset than before."""
    while high - low > MINUTE:
        middle = low + ((high - low) // 2) // MINUTE * MINUTE
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)
