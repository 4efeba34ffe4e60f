"""What an operator can see of schedules, and do to them; previews of their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Unpack

from tenure._model.audit import By
from tenure._model.job import EnqueueResult
from tenure._model.schedule import (
    ClockChange,
    RecentRuns,
    ScheduleRow,
    ScheduleState,
    TickRow,
    Timing,
)
from tenure._rules import cron as cron_rules
from tenure._rules import timing
from tenure._rules.schedules import due_at, is_paused
from tenure._rules.time_zones import zone_named
from tenure._schedule_spec import AnyTask, ScheduleChanges, ScheduleFields, ScheduleSpec, aware
from tenure._store.steps import Op, atomically
from tenure.admin._commands import AdminCommand, AsyncTwin, check_page_size
from tenure.admin.backfill import BackfillCommands
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
    shift: ClockChange | None = None
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


def _runs(row: ScheduleRow, after: datetime, count: int) -> Sequence[Run]:
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
    shift = cron_rules.shift_on(of.zone, fire_at)
    return Run(
        fire_at=fire_at,
        local=fire_at.astimezone(zone_named(of.zone)),
        run_at=fire_at if row is None else due_at(row.name, fire_at, row.in_force.jitter),
        shift=shift,
        moved=shift is not None and cron_rules.moved(of, fire_at),
        paused=row is not None and is_paused(row, fire_at),
    )


class Schedules(BackfillCommands):
    """Commands on schedules: `app.admin.schedules`. What code declares, code owns: its times, its
    task and its arguments are changed there; the rest here."""

    @AdminCommand
    def list(self, *, after: str = "", count: int = 100) -> Op[Sequence[ScheduleRow]]:
        """Schedules by name, above a name."""
        check_page_size(count)
        return self._store.schedules.list(after=after, count=count)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def get(self, name: str) -> Op[ScheduleRow | None]:
        """The schedule of this name, or None."""
        return self._store.schedules.get(name)

    aget: Final = AsyncTwin(get)

    @AdminCommand
    def create(
        self, name: str, task: AnyTask, by: By, **fields: Unpack[ScheduleFields]
    ) -> Op[ScheduleRow]:
        """Make a schedule. Of a registered task the arguments are checked and the options taken;
        of one that is only named, what is not given is the queue's, the settings', or built in."""
        spec = ScheduleSpec(fields, ScheduleFields.__optional_keys__)
        return self._store.schedules.create(spec.new(name, task), by)

    acreate: Final = AsyncTwin(create)

    @AdminCommand
    def update(self, name: str, by: By, **fields: Unpack[ScheduleChanges]) -> Op[ScheduleRow]:
        """Change what is given, and leave the rest. A `task` brings its own options, and has the
        arguments checked. Of a schedule that code declares only `missed`, `missed_within`,
        `missed_limit` and `jitter` are changed here; `"declared"` gives one back to the code."""
        spec = ScheduleSpec(fields, ScheduleChanges.__optional_keys__)
        return atomically(self._update(name, spec, by))

    aupdate: Final = AsyncTwin(update)

    def _update(self, name: str, spec: ScheduleSpec, by: By) -> Op[ScheduleRow]:
        row = yield from self._found(name, lock=True)
        if row.program is None:
            return (yield from self._store.schedules.update(spec.changed(row), by))
        return (yield from self._store.schedules.set_policy(name, spec.policies(row), by))

    @AdminCommand
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]:
        """Let ticks make no jobs, until then or until resumed; each is recorded as paused."""
        return self._store.schedules.pause(name, by, until=aware(until, "until"))

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, name: str, by: By) -> Op[ScheduleRow]:
        """Let a paused schedule's ticks make jobs again, from the next one on."""
        return self._store.schedules.resume(name, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def delete(self, name: str, by: By) -> Op[ScheduleRow]:
        """Remove a schedule that no code declares any more; its ticks and jobs stay."""
        return self._store.schedules.delete(name, by)

    adelete: Final = AsyncTwin(delete)

    @AdminCommand
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue the schedule's job now, beside its ticks. The same key makes no second one,
        until a day after that job has ended."""
        return self._store.schedules.run(name, by, key=key)

    arun: Final = AsyncTwin(run)

    @AdminCommand
    def ticks(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]:
        """The past runs: recorded ticks, newest first, before an instant."""
        check_page_size(count)
        return self._store.ticks.list(name, before=aware(before, "before"), count=count)

    aticks: Final = AsyncTwin(ticks)

    @AdminCommand
    def recent_runs(self, names: Sequence[str], *, ticks: int = 20) -> Op[Mapping[str, RecentRuns]]:
        """What each of these schedules came to: its last ticks, newest first, and the state of the
        job that the last one made."""
        check_page_size(len(names) or 1)
        check_page_size(ticks)
        return self._store.inspection.recent_runs(names, count=ticks)

    arecent_runs: Final = AsyncTwin(recent_runs)

    @AdminCommand
    def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Op[Sequence[Run]]:
        """The next runs of a schedule, after an instant or now by the database's clock."""
        row = yield from self._found(name)
        now = yield from self._now()
        return _runs(row, after or now, count)

    apreview: Final = AsyncTwin(preview)

    preview_timing: Final = staticmethod(preview_timing)
