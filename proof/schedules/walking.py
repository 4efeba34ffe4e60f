"""A cron's ticks over years, by what a zone's clock shows: the oracle's rule in larger strides.

Where the clock neither jumps nor stops, it shows what UTC shows and so much more; only where its
offset changes is it looked at closely. A test holds it to the oracle's walk minute by minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from proof.schedules.plain_cron import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from proof.schedules.plain_cron import PlainCron

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
# The clock that only goes forward is wound up before the window.
_WINDING = timedelta(hours=30)


def walk(cron: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """The ticks after one instant and up to another."""
    begin = (after - _WINDING).replace(minute=0, second=0, microsecond=0)
    stretches = _stretches(zone, begin, until)
    fields = plain(cron)
    ticks = _once(fields, stretches) if fields.fixed else _rhythm(fields, stretches)
    return [tick for tick in ticks if after < tick <= until]


@lru_cache(maxsize=256)
def _stretches(
    zone: str, begin: datetime, until: datetime
) -> list[tuple[datetime, datetime, timedelta]]:
    """From when until when the zone's clock is how far ahead of UTC; to the minute."""
    info = ZoneInfo(zone)
    found = []
    since, offset = begin, _offset(info, begin)
    at = begin
    while at <= until:
        at += _HOUR
        if _offset(info, at) != offset:
            change = at - _HOUR
            while _offset(info, change) == offset:
                change += _MINUTE
            found.append((since, change, offset))
            since, offset = change, _offset(info, change)
    found.append((since, at + _MINUTE, offset))
    return found


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def _rhythm(
    cron: PlainCron, stretches: list[tuple[datetime, datetime, timedelta]]
) -> Iterator[datetime]:
    """Every minute at which the clock shows one of its times."""
    for since, before, offset in stretches:
        shown = since.replace(tzinfo=None) + offset
        ends = before.replace(tzinfo=None) + offset
        for time in _times(cron, shown, ends):
            yield since + (time - shown)


def _once(
    cron: PlainCron, stretches: list[tuple[datetime, datetime, timedelta]]
) -> Iterator[datetime]:
    """What a clock that only goes forward shows: nothing twice, and what it left out at once."""
    reached = stretches[0][0].replace(tzinfo=None) + stretches[0][2]
    for since, before, offset in stretches:
        shown = since.replace(tzinfo=None) + offset
        ends = before.replace(tzinfo=None) + offset
        if any(True for _ in _times(cron, reached, min(shown + _MINUTE, ends))):
            yield since
        for time in _times(cron, max(reached, shown + _MINUTE), ends):
            yield since + (time - shown)
        reached = max(reached, ends)


def _times(cron: PlainCron, since: datetime, before: datetime) -> Iterator[datetime]:
    """The expression's times, from one on and before another, of a clock without a zone."""
    minutes, hours = sorted(cron.minutes()), sorted(cron.hours())
    day = since.date()
    while day < before.date() + _DAY:
        if _on(cron, day):
            for hour in hours:
                for minute in minutes:
                    time = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - a zone's clock
                    if since <= time < before:
                        yield time
        day += _DAY


@lru_cache(maxsize=100_000)
def _on(cron: PlainCron, day: date) -> bool:
    return cron.on(day)
