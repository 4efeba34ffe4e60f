"""The ticks of a window of the past, that a backfill is to fill."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from tenure._model.schedule import ScheduleRow, Timing
from tenure._rules import timing
from tenure._rules.operations import MOST_ITEMS
from tenure.admin.definitions import aware
from tenure.errors import InvalidValue

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Window:
    """The ticks of one timing between two instants, both included."""

    timing: Timing
    since: datetime
    until: datetime

    def ticks(self) -> Sequence[datetime]:
        """Each of them, in order; InvalidValue for more than are sensible at once."""
        found = timing.between(self.timing, self.since - _INSTANT, self.until)
        ticks = list(islice(found, MOST_ITEMS + 1))
        if len(ticks) > MOST_ITEMS:
            raise InvalidValue(
                f"there are more than {MOST_ITEMS:,} ticks in this window; backfill a part of it"
            )
        return ticks

    def refuse_forgotten(self, made_at: datetime, kept_since: datetime) -> None:
        """Refuse ticks that the schedule may have fired, and whose rows are no longer kept."""
        first = max(self.since, made_at)
        if first < min(self.until, kept_since):
            raise InvalidValue(
                f"ticks before {kept_since:%Y-%m-%d %H:%M}Z are no longer kept, so that nobody "
                "knows which had their job; begin there, or say `forgotten` and every older one "
                "makes a job"
            )


def window(row: ScheduleRow, since: datetime, until: datetime, now: datetime) -> Window:
    """The window that a backfill is to fill; what is yet to come, or is due and not fired yet, is
    left to the schedule."""
    aware(since, "since")
    aware(until, "until")
    if since > until:
        raise InvalidValue(f"since {since} is after until {until}; turn them around")
    if since > now:
        raise InvalidValue(f"since {since} is yet to come; a backfill is for the past")
    last = min(until, now)
    if row.next_at is not None:
        last = min(last, row.next_at - _INSTANT)
    return Window(row.timing, since.astimezone(UTC), last.astimezone(UTC))
