"""Cron expressions, and ticks that meet a change of the clock.

Cron expressions: reading them, and their ticks through changes of the clock.

cronsim reads the fields. This module computes their instants, by the rules of
docs/decisions/0008-cron-and-clock-changes.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from functools import lru_cache

from cronsim import CronSim, CronSimError

from tenure._model.schedule import ClockChange, Timing
from tenure._rules.time_zones import change_within, offset_at, zone_named
from tenure.errors import InvalidValue

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of the month": "1 to 31, L (the last) or LW (the last weekday)",
    "month": "1 to 12 or JAN to DEC",
    "day of the week": "0 to 7 (0 and 7 are Sunday) or SUN to SAT, 5L (the last) or 1#2 (the 2nd)",
}
LONGEST = 500
# Every day of the calendar, also a Monday that is the 29th of February, comes again within these.
_YEARS = 50
_DAY = timedelta(days=1)
_MINUTES = 24 * 60
_SECOND = timedelta(seconds=1)
# A few days inside the calendar's ends, so that no zone's offset leaves it.
_FIRST, _LAST = datetime(3, 1, 1, tzinfo=UTC), datetime(9997, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that was read. `fixed`: it names times of day, not a rhythm."""

    fixed: bool
    hours: Sequence[int]
    minutes: Sequence[int]
    rule: CronSim

    def has(self, local: datetime) -> bool:
        """Whether a clock that shows this shows one of its times."""
        return (
            local.second == 0
            and local.minute in self.minutes
            and local.hour in self.hours
            and self._has_day(local.date())
        )

    def _has_day(self, day: date) -> bool:
        return day.month in self.rule.months and self.rule.match_day(day)

    def day(self, start: date, end: date, *, back: bool = False) -> date | None:
        """The first of its days from `start` to `end`, or the last, if there is one."""
        day = end if back else start
        while start <= day <= end:
            if day.month not in self.rule.months:
                # To the last of the month before, or to the first of the one after.
                day = day.replace(day=1) - _DAY if back else _next_month(day)
            elif self.rule.match_day(day):
                return day
            else:
                day += -_DAY if back else _DAY
        return None

    def times(self, start: datetime, end: datetime, *, back: bool = False) -> Iterator[datetime]:
        """What a clock that never changes shows at its times from `start` to `end`, in order."""
        first, final = start.date(), end.date()
        opening = 60 * start.hour + start.minute + (start.second > 0)
        closing = 60 * end.hour + end.minute
        while (day := self.day(first, final, back=back)) is not None:
            low = opening if day == start.date() else 0
            high = closing if day == end.date() else _MINUTES
            for hour, minute in self._clock(low, high, back=back):
                yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - bare
            if back:
                final = day - _DAY
            else:
                first = day + _DAY

    def _clock(self, low: int, high: int, *, back: bool) -> Iterator[tuple[int, int]]:
        """Its hours and minutes from one minute of the day to another."""
        for hour in reversed(self.hours) if back else self.hours:
            if low - 60 < 60 * hour <= high:
                for minute in reversed(self.minutes) if back else self.minutes:
                    if low <= 60 * hour + minute <= high:
                        yield hour, minute


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


@lru_cache(maxsize=1024)
def read(expression: str) -> Cron:
    """The expression, read; refused with what to write if it cannot be, or names no day."""
    if len(expression) > LONGEST:
        raise InvalidValue(f"cron has {len(expression):,} characters; {LONGEST} is the most")
    words = expression.split()
    if expression.strip().startswith("@"):
        words = _unfolded(expression.strip()).split()
    if len(words) == 6:
        raise InvalidValue(
            f"cron {expression!r} has six fields; there are five, and none for seconds: for ticks "
            "closer than a minute write every=timedelta(seconds=…)"
        )
    if len(words) != 5:
        raise InvalidValue(
            f"cron {expression!r} has {len(words)} fields; it must have five: {', '.join(FIELDS)}"
        )
    _check_fields(expression, words)
    try:
        rule = CronSim(" ".join(words), datetime(2000, 1, 1))  # noqa: DTZ001 - it only reads
        found = Cron(
            fixed=not words[0].startswith("*") and not words[1].startswith("*"),
            hours=tuple(sorted(rule.hours)),
            minutes=tuple(sorted(rule.minutes)),
            rule=rule,
        )
        if found.day(date(2000, 1, 1), date(2000 + _YEARS, 1, 1)) is not None:
            return found
    except CronSimError:
        pass  # each field can be read: there is no day that fits them all
    raise InvalidValue(
        f"cron {expression!r} has no day in {_YEARS} years: no date fits its day of the month, "
        "month and day of the week together"
    )


def _check_fields(expression: str, words: Sequence[str]) -> None:
    for number, (name, allowed) in enumerate(FIELDS.items()):
        alone = ["*"] * 5
        alone[number] = words[number]
        # By itself any day is in some month, so that only the field's own fault is found.
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1))  # noqa: DTZ001 - it only reads
        except (CronSimError, ValueError):
            raise InvalidValue(
                f"cron {expression!r}: {words[number]!r} is no {name}; write * or {allowed}, "
                "lists (1,3), ranges that go up (1-5) and steps (*/2, 1-9/2)"
            ) from None


def _unfolded(nickname: str) -> str:
    if nickname.casefold() == "@reboot":
        raise InvalidValue(
            "cron '@reboot' names no time, and a schedule does not belong to one machine that "
            "starts; enqueue where your program starts, with a key so that it is one job"
        )
    try:
        return NICKNAMES[nickname.casefold()]
    except KeyError:
        raise InvalidValue(
            f"cron {nickname!r} is no nickname; there are: {', '.join(NICKNAMES)}"
        ) from None


def forward(cron: Cron, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Its ticks after an instant, in order, until there is none for fifty years."""
    start = max(after.replace(microsecond=0), _FIRST)
    while start < _LAST:
        # A day of the calendar begins and ends somewhere within a day of where it does in UTC.
        horizon = date(min(start.year + _YEARS, _LAST.year), 1, 1)
        day = cron.day(start.date() - _DAY, horizon)
        if day is None:
            return
        start = max(start, _midnight(day) - _DAY)
        yield from _within(cron, zone, start, start + _DAY)
        start += _DAY


def backward(cron: Cron, zone: tzinfo, until: datetime) -> Iterator[datetime]:
    """Its ticks up to an instant, the last one first."""
    end = min(until.replace(microsecond=0), _LAST)
    while end > _FIRST:
        horizon = date(max(end.year - _YEARS, _FIRST.year), 1, 1)
        day = cron.day(horizon, end.date() + _DAY, back=True)
        if day is None:
            return
        end = min(end, _midnight(day) + 2 * _DAY)
        yield from _within(cron, zone, end - _DAY, end, back=True)
        end -= _DAY


def _bare(shown: datetime) -> datetime:
    return shown.replace(tzinfo=None)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _within(
    cron: Cron, zone: tzinfo, after: datetime, until: datetime, *, back: bool = False
) -> Iterator[datetime]:
    """Its ticks after one instant and up to another, not more than a day later.

    Where the clock changes the day has two parts, each with an offset of its own. A rhythm has
    what the clock shows in each. Fixed times go on in the second part where the first had ended:
    what is shown again is not counted again, what was left out counts at the change.
    """
    change = change_within(zone, after, until)
    parts = [(after, until)] if change is None else [(after, change - _SECOND), (change, until)]
    told: datetime | None = None
    for start, end in reversed(parts) if back else parts:
        offset = offset_at(zone, start)
        shown, shown_last = _bare(start + offset), _bare(end + offset)
        if cron.fixed:
            set_at = change if start == change else _repeating(zone, start)
            if set_at is not None:
                shown = _bare(set_at + offset_at(zone, set_at - _SECOND))
        for time in cron.times(shown, shown_last, back=back):
            tick = max((time - offset).replace(tzinfo=UTC), start)
            if tick > after and tick != told:
                told = tick
                yield tick


def _repeating(zone: tzinfo, instant: datetime) -> datetime | None:
    """When the clock was set back, if it shows at this instant what it has shown before."""
    if not instant.astimezone(zone).fold:
        return None
    return change_within(zone, instant - _DAY, instant)


def shift_on(zone: str, fire_at: datetime) -> ClockChange | None:
    """The change of the clock on the day that the zone's calendar shows at a tick, if it has one.

    A gap belongs to the day of the times that are left out, an overlap to that of those repeated.
    """
    there = zone_named(zone)
    day = fire_at.astimezone(there).date()
    # The earlier reading of midnight, and the later one of the next: both ends' changes are told.
    begin = datetime.combine(day, time_of_day(), tzinfo=there)
    end = datetime.combine(day + timedelta(days=1), time_of_day(fold=1), tzinfo=there)
    change = change_within(there, begin.astimezone(UTC) - _SECOND, end.astimezone(UTC) - _SECOND)
    if change is None:
        return None
    before, after = offset_at(there, change - _SECOND), offset_at(there, change)
    shown = change.replace(tzinfo=None)
    return ClockChange(at=change, shown=shown + before, becomes=shown + after)


def moved(timing: Timing, fire_at: datetime) -> bool:
    """Whether a tick stands at the end of a gap for a time that the clock left out."""
    if timing.cron is None:
        return False
    return not read(timing.cron).has(fire_at.astimezone(zone_named(timing.zone)))
