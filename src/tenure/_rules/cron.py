"""Cron ticks when clocks change; see docs/decisions/0008-cron-and-clock-changes.md."""

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
# Every calendar day, even a Monday, February 29, recurs within this many years.
_YEARS = 50
_DAY = timedelta(days=1)
_MINUTES = 24 * 60
_SECOND = timedelta(seconds=1)
# Well inside datetime's range, so no zone's offset leaves it.
_FIRST, _LAST = datetime(3, 1, 1, tzinfo=UTC), datetime(9997, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression. If `fixed` is true, it specifies times of day rather than a rhythm."""

    fixed: bool
    hours: Sequence[int]
    minutes: Sequence[int]
    rule: CronSim

    def has(self, local: datetime) -> bool:
        """Return whether this local time matches."""
        return (
            local.second == 0
            and local.minute in self.minutes
            and local.hour in self.hours
            and self._has_day(local.date())
        )

    def _has_day(self, day: date) -> bool:
        return day.month in self.rule.months and self.rule.match_day(day)

    def day(self, start: date, end: date, *, back: bool = False) -> date | None:
        """Return the first (or last) matching day from `start` to `end`, if any."""
        day = end if back else start
        while start <= day <= end:
            if day.month not in self.rule.months:
                # Jump to the last day of the previous month, or to the first day of the next.
                day = day.replace(day=1) - _DAY if back else _next_month(day)
            elif self.rule.match_day(day):
                return day
            else:
                day += -_DAY if back else _DAY
        return None

    def times(self, start: datetime, end: datetime, *, back: bool = False) -> Iterator[datetime]:
        """Yield matching local times from `start` to `end`, ignoring clock changes."""
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
        """Yield matching hours and minutes within these minutes of the day."""
        for hour in reversed(self.hours) if back else self.hours:
            if low - 60 < 60 * hour <= high:
                for minute in reversed(self.minutes) if back else self.minutes:
                    if low <= 60 * hour + minute <= high:
                        yield hour, minute


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


@lru_cache(maxsize=1024)
def read(expression: str) -> Cron:
    """Parse an expression. Raise InvalidValue if it is invalid or matches no day."""
    if len(expression) > LONGEST:
        raise InvalidValue(f"cron must have at most {LONGEST} characters, got {len(expression):,}")
    words = expression.split()
    if expression.strip().startswith("@"):
        words = _unfolded(expression.strip()).split()
    if len(words) == 6:
        raise InvalidValue(
            f"cron {expression!r} has six fields, but cron has five and none for seconds; for "
            "ticks closer than a minute write every=timedelta(seconds=…)"
        )
    if len(words) != 5:
        raise InvalidValue(
            f"cron must have five fields ({', '.join(FIELDS)}), got {len(words)}: {expression!r}"
        )
    _check_fields(expression, words)
    try:
        rule = CronSim(" ".join(words), datetime(2000, 1, 1))  # noqa: DTZ001 - it only reads
        cron = Cron(
            fixed=not words[0].startswith("*") and not words[1].startswith("*"),
            hours=tuple(sorted(rule.hours)),
            minutes=tuple(sorted(rule.minutes)),
            rule=rule,
        )
        if cron.day(date(2000, 1, 1), date(2000 + _YEARS, 1, 1)) is not None:
            return cron
    except CronSimError:
        pass  # each field is valid, but no day matches them all
    raise InvalidValue(
        f"cron {expression!r} matches no day in {_YEARS} years: its day of the month, month "
        "and day of the week never meet"
    )


def _check_fields(expression: str, words: Sequence[str]) -> None:
    for number, (name, allowed) in enumerate(FIELDS.items()):
        alone = ["*"] * 5
        alone[number] = words[number]
        # With a wildcard in the other fields, only this field's own error is reported.
        try:
            CronSim(" ".join(alone), datetime(2000, 1, 1))  # noqa: DTZ001 - it only reads
        except (CronSimError, ValueError):
            raise InvalidValue(
                f"cron {expression!r}: {words[number]!r} is not a valid {name}; write * or "
                f"{allowed}, lists (1,3), ascending ranges (1-5) and steps (*/2, 1-9/2)"
            ) from None


def _unfolded(nickname: str) -> str:
    if nickname.casefold() == "@reboot":
        raise InvalidValue(
            "cron '@reboot' is not supported: a schedule is not tied to one machine; enqueue a job "
            "where your program starts, with a key so that there is only one"
        )
    try:
        return NICKNAMES[nickname.casefold()]
    except KeyError:
        raise InvalidValue(
            f"cron nickname must be one of {', '.join(NICKNAMES)}, got {nickname!r}"
        ) from None


def forward(cron: Cron, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield a cron's ticks after an instant, until none follow for fifty years."""
    start = max(after.replace(microsecond=0), _FIRST)
    while start < _LAST:
        # A local day begins and ends within one day of the same date in UTC.
        horizon = date(min(start.year + _YEARS, _LAST.year), 1, 1)
        day = cron.day(start.date() - _DAY, horizon)
        if day is None:
            return
        start = max(start, _midnight(day) - _DAY)
        yield from _within(cron, zone, start, start + _DAY)
        start += _DAY


def backward(cron: Cron, zone: tzinfo, until: datetime) -> Iterator[datetime]:
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
    """Yield a cron expression's ticks after one instant and up to another, at most a day later.

    A clock change splits the day into two parts, each with its own UTC offset. A rhythm ticks at
    its local times in both parts. For fixed times, the second part continues where the first one
    ended: a time that occurs twice ticks only once, and a time inside the gap ticks at the moment
    of the change.
    """
    change = change_within(zone, after, until)
    parts = [(after, until)] if change is None else [(after, change - _SECOND), (change, until)]
    previous: datetime | None = None
    for start, end in reversed(parts) if back else parts:
        offset = offset_at(zone, start)
        shown, shown_last = _bare(start + offset), _bare(end + offset)
        if cron.fixed:
            set_at = change if start == change else _repeating(zone, start)
            if set_at is not None:
                shown = _bare(set_at + offset_at(zone, set_at - _SECOND))
        for time in cron.times(shown, shown_last, back=back):
            tick = max((time - offset).replace(tzinfo=UTC), start)
            if tick > after and tick != previous:
                previous = tick
                yield tick


def _repeating(zone: tzinfo, instant: datetime) -> datetime | None:
    """If this local time is occurring for the second time, return when the clock was set back."""
    if not instant.astimezone(zone).fold:
        return None
    return change_within(zone, instant - _DAY, instant)


def shift_on(zone: str, fire_at: datetime) -> ClockChange | None:
    """Return the clock change on a tick's local day, if there is one."""
    tz = zone_named(zone)
    day = fire_at.astimezone(tz).date()
    # Use the earlier reading of this midnight and the later reading of the next one, so that
    # changes at both ends count.
    begin = datetime.combine(day, time_of_day(), tzinfo=tz)
    end = datetime.combine(day + timedelta(days=1), time_of_day(fold=1), tzinfo=tz)
    change = change_within(tz, begin.astimezone(UTC) - _SECOND, end.astimezone(UTC) - _SECOND)
    if change is None:
        return None
    before, after = offset_at(tz, change - _SECOND), offset_at(tz, change)
    shown = change.replace(tzinfo=None)
    return ClockChange(at=change, shown=shown + before, becomes=shown + after)


def moved(timing: Timing, fire_at: datetime) -> bool:
    """Return whether a tick was moved to the end of a gap."""
    if timing.cron is None:
        return False
    return not read(timing.cron).has(fire_at.astimezone(zone_named(timing.zone)))
