"""The runs that are to come: each in UTC and in its zone, with what a clock change does to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tenure._model.schedule import ScheduleRow, ScheduleState, Shift, Timing
from tenure._rules import dst, timing
from tenure._rules.ticking import due_at, is_paused
from tenure._rules.zones import zone_named
from tenure.admin.definitions import aware
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Seconds

_LONGEST_PREVIEW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is to come: its tick in UTC and in the schedule's zone; when its job is due; the
    change of the clock on its day, if there is one, and whether it moved the tick; and whether
    the tick falls into a pause."""

    fire_at: datetime
    local: datetime
    run_at: datetime
    shift: Shift | None = None
    moved: bool = False
    paused: bool = False


def preview_timing(
    *,
    cron: str | None = None,
    every: Seconds | None = None,
    at: datetime | None = None,
    timezone: str = "UTC",
    count: int = 10,
    after: datetime | None = None,
) -> Sequence[Run]:
    """The next runs of a timing that no schedule has yet, after an instant or now by the clock
    here. Asks no database."""
    lasts = None if every is None else duration(every, "every")
    wanted = Timing(cron=cron, every=lasts, at=at, zone=timezone)
    timing.check(wanted)
    return [_run(wanted, each) for each in _upcoming(wanted, after or datetime.now(UTC), count)]


def runs(row: ScheduleRow, after: datetime, count: int) -> Sequence[Run]:
    """The next runs of a schedule after an instant; none of one that its program dropped."""
    if row.state is ScheduleState.RETIRED:
        return []
    return [_run(row.timing, each, row) for each in _upcoming(row.timing, after, count)]


def _upcoming(wanted: Timing, after: datetime, count: int) -> Sequence[datetime]:
    if not 1 <= count <= _LONGEST_PREVIEW:
        raise InvalidValue(f"a preview of {count} runs is not within 1 to {_LONGEST_PREVIEW:,}")
    aware(after, "after")
    return timing.upcoming(wanted, after.astimezone(UTC), count)


def _run(of: Timing, fire_at: datetime, row: ScheduleRow | None = None) -> Run:
    shift = dst.shift_on(of.zone, fire_at)
    return Run(
        fire_at=fire_at,
        local=fire_at.astimezone(zone_named(of.zone)),
        run_at=fire_at if row is None else due_at(row.name, fire_at, row.in_force.jitter),
        shift=shift,
        moved=shift is not None and dst.moved(of, fire_at),
        paused=row is not None and is_paused(row, fire_at),
    )
