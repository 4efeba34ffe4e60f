"""Where ticks meet a change of the clock, for previews: which day has one, which tick was moved."""

from datetime import UTC, datetime, time, timedelta

from tenure._model.schedule import Shift, Timing
from tenure._rules.cron import read
from tenure._rules.zones import change_within, offset_at, zone_named

_SECOND = timedelta(seconds=1)


def shift_on(zone: str, fire_at: datetime) -> Shift | None:
    """The change of the clock on the day that the zone's calendar shows at a tick, if it has one.

    A gap belongs to the day of the times that are left out, an overlap to that of those repeated.
    """
    there = zone_named(zone)
    day = fire_at.astimezone(there).date()
    # The earlier reading of midnight, and the later one of the next: both ends' changes are told.
    begin = datetime.combine(day, time(), tzinfo=there)
    end = datetime.combine(day + timedelta(days=1), time(fold=1), tzinfo=there)
    change = change_within(there, begin.astimezone(UTC) - _SECOND, end.astimezone(UTC) - _SECOND)
    if change is None:
        return None
    before, after = offset_at(there, change - _SECOND), offset_at(there, change)
    shown = change.replace(tzinfo=None)
    return Shift(at=change, shown=shown + before, becomes=shown + after)


def moved(timing: Timing, fire_at: datetime) -> bool:
    """Whether a tick stands at the end of a gap for a time that the clock left out."""
    if timing.cron is None:
        return False
    return not read(timing.cron).has(fire_at.astimezone(zone_named(timing.zone)))
