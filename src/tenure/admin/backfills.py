"""A backfill: the ticks of a window of the past, in stretches that are a transaction each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from tenure._model.schedule import Backfilled, ScheduleRow, Timing
from tenure._rules import timing
from tenure.admin.definitions import aware
from tenure.errors import InvalidValue

STRETCH = 500
MOST = 1_000_000
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillProgress:
    """How far a backfill has come: ticks looked at and how many there are; jobs made, and ticks
    that had one already; the last tick looked at."""

    done: int = 0
    total: int
    made: int = 0
    already: int = 0
    up_to: datetime | None = None

    def and_then(self, stretch: Sequence[datetime], came: Backfilled) -> "BackfillProgress":
        """How far it has come after one more stretch."""
        return BackfillProgress(
            done=self.done + len(stretch),
            total=self.total,
            made=self.made + came.made,
            already=self.already + came.already,
            up_to=stretch[-1],
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The ticks of one timing between two instants, both included."""

    timing: Timing
    since: datetime
    until: datetime

    def ticks(self) -> Iterator[datetime]:
        """Each of them, in order."""
        return timing.between(self.timing, self.since - _INSTANT, self.until)

    def start(self) -> BackfillProgress:
        """Nothing done yet; counts the ticks, and refuses more than are sensible at once."""
        total = sum(1 for _ in islice(self.ticks(), MOST + 1))
        if total > MOST:
            raise InvalidValue(
                f"there are more than {MOST:,} ticks in this window; backfill a part of it"
            )
        return BackfillProgress(total=total)

    def refuse_forgotten(self, made_at: datetime, kept_since: datetime) -> None:
        """Refuse ticks that the schedule may have fired, and whose rows are no longer kept."""
        first = max(self.since, made_at)
        if first < min(self.until, kept_since):
            raise InvalidValue(
                f"ticks before {kept_since:%Y-%m-%d %H:%M}Z are no longer kept, so that nobody "
                "knows which had their job; begin there, or say `forgotten` and every older one "
                "makes a job"
            )

    def stretches(self) -> Iterator[Sequence[datetime]]:
        """The ticks by as many as one transaction takes."""
        rest = self.ticks()
        while stretch := list(islice(rest, STRETCH)):
            yield stretch


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
