"""Schedule commands, and previews of upcoming runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Unpack

from tenure._model.audit import By
from tenure._model.job import EnqueueResult
from tenure._model.schedule import (
    ClockChange,
    NewSchedule,
    RecentRuns,
    ScheduleRow,
    ScheduleState,
    TickRow,
    Timing,
)
from tenure._rules import access, timing
from tenure._rules import cron as cron_rules
from tenure._rules.schedules import due_at, is_paused
from tenure._rules.time_zones import zone_named
from tenure._schedule_spec import AnyTask, ScheduleChanges, ScheduleFields, ScheduleSpec, aware
from tenure._store.steps import Op, atomically
from tenure.admin._commands import AdminCommand, AsyncTwin, check_kinds, check_page_size
from tenure.admin.backfill import BackfillCommands
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Seconds

_LONGEST_PREVIEW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A schedule's future run.

    Attributes:
        fire_at: The run's time, in UTC.
        local: The same time in the schedule's time zone.
        run_at: When its job is due, including jitter.
        shift: The clock change on that day, or None.
        moved: Whether the clock change moved the run.
        paused: Whether the schedule is paused at that time.
    """

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
    """Preview a timing's runs, without a schedule or a database.

    Args:
        cron: A five-field cron expression, or a name such as `"@daily"`.
        every: The interval between runs, at least 1 s.
        at: Run once, at this aware datetime.
        timezone: The cron expression's time zone (default: `"UTC"`).
        count: How many runs, 1 to 1,000 (default: 10).
        after: Only runs after this aware datetime (default: now).

    Returns:
        The next runs.

    Raises:
        InvalidValue: The timing or `count` is invalid.
    """
    lasts = None if every is None else duration(every, "every")
    wanted = Timing(cron=cron, every=lasts, at=at, zone=timezone)
    timing.check(wanted)
    return [_run(wanted, each) for each in _upcoming(wanted, after or datetime.now(UTC), count)]


def _runs(row: ScheduleRow, after: datetime, count: int) -> Sequence[Run]:
    """Return a schedule's next runs, or none if its program no longer declares it."""
    if row.state is ScheduleState.RETIRED:
        return []
    return [_run(row.timing, each, row) for each in _upcoming(row.timing, after, count)]


def _upcoming(wanted: Timing, after: datetime, count: int) -> Sequence[datetime]:
    if not 1 <= count <= _LONGEST_PREVIEW:
        raise InvalidValue(f"count must be from 1 to {_LONGEST_PREVIEW:,}, got {count}")
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
    """Schedule commands: `app.admin.schedules`.

    If code declares a schedule, change its times, task and arguments in the code.
    """

    @AdminCommand
    def list(
        self, *, after: str = "", count: int = 100, patterns: Sequence[str] | None = None
    ) -> Op[Sequence[ScheduleRow]]:
        """List schedules by name.

        Args:
            after: Only names after this one, to get the next page.
            count: The page size, 1 to 1,000 (default: 100).
            patterns: Only queues that match one of these, such as `"mail.*"` (default: all queues).

        Returns:
            The schedules.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        granted = access.like_patterns(patterns)
        return self._store.schedules.list(after=after, count=count, granted=granted)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def get(self, name: str) -> Op[ScheduleRow | None]:
        """Get a schedule by name.

        Args:
            name: The schedule's name.

        Returns:
            The schedule, or None.
        """
        return self._store.schedules.get(name)

    aget: Final = AsyncTwin(get)

    @AdminCommand
    def create(
        self, name: str, task: AnyTask, by: By, **fields: Unpack[ScheduleFields]
    ) -> Op[ScheduleRow]:
        """Create a schedule. Pass exactly one of `cron`, `every` and `at`.

        Args:
            name: The schedule's name.
            task: A task, which validates the arguments and supplies options, or a task name.
            by: Who is doing this and why, for the audit log.
            cron: A five-field cron expression, or a name such as `"@daily"`.
            every: The interval between runs, at least 1 s, counted from the Unix epoch.
            at: Run once, at this aware datetime.
            timezone: The cron expression's time zone (default: `"UTC"`).
            args: The task's arguments by name.
            queue: The queue for its jobs (default: the task's).
            priority: 0 to 9, where 9 is the most urgent (default: the task's).
            max_attempts: How many times to try each job (default: the task's).
            timeout: How long an attempt may run (default: the task's).
            expires_in: Cancel a job that hasn't started this long after being enqueued.
            tags: Short strings stored with its jobs.
            missed: Which missed runs to catch up on: `"skip"`, `"latest"` or `"all"`
                (default: `"latest"`).
            missed_within: How far back to catch up on missed runs (default: 1 day).
            missed_limit: How many missed runs to catch up on, up to 10,000 (default: 100).
            overlap: `"skip"` creates no job until the earlier one has ended (default: `"allow"`).
            jitter: Delay each job by a stable fraction of this duration, up to 1 day (default: 0).

        Returns:
            The schedule.

        Raises:
            InvalidValue: A field is invalid, or the name is taken.
        """
        spec = ScheduleSpec(fields, ScheduleFields.__optional_keys__)
        return atomically(self._create(spec.new(name, task), by))

    acreate: Final = AsyncTwin(create)

    @AdminCommand
    def update(self, name: str, by: By, **fields: Unpack[ScheduleChanges]) -> Op[ScheduleRow]:
        """Change some of a schedule's fields and keep the rest.

        If code declares the schedule, you can change only `missed`, `missed_within`, `missed_limit`
        and `jitter`. `"declared"` restores the code's value.

        Args:
            name: The schedule's name.
            by: Who is doing this and why, for the audit log.
            task: Another task, whose own options then apply, or a task name.
            cron: A five-field cron expression, or a name such as `"@daily"`.
            every: The interval between runs, at least 1 s, counted from the Unix epoch.
            at: Run once, at this aware datetime.
            timezone: The cron expression's time zone.
            args: The task's arguments by name.
            queue: The queue for its jobs.
            priority: 0 to 9, where 9 is the most urgent.
            max_attempts: How many times to try each job.
            timeout: How long an attempt may run.
            expires_in: Cancel a job that hasn't started this long after being enqueued.
            tags: Short strings stored with its jobs.
            missed: Which missed runs to catch up on: `"skip"`, `"latest"` or `"all"`.
            missed_within: How far back to catch up on missed runs.
            missed_limit: How many missed runs to catch up on, up to 10,000.
            overlap: `"skip"` creates no job until the earlier one has ended.
            jitter: Delay each job by a stable fraction of this duration, up to 1 day.

        Returns:
            The schedule.

        Raises:
            InvalidValue: The schedule does not exist, or a field is invalid.
        """
        spec = ScheduleSpec(fields, ScheduleChanges.__optional_keys__)
        return atomically(self._update(name, spec, by))

    aupdate: Final = AsyncTwin(update)

    def _create(self, new: NewSchedule, by: By) -> Op[ScheduleRow]:
        yield from check_kinds(self._store, {new.job.task})
        return (yield from self._store.schedules.create(new, by))

    def _update(self, name: str, spec: ScheduleSpec, by: By) -> Op[ScheduleRow]:
        row = yield from self._found(name, lock=True)
        if row.program is None:
            new = spec.changed(row)
            yield from check_kinds(self._store, {new.job.task})
            return (yield from self._store.schedules.update(new, by))
        return (yield from self._store.schedules.set_policy(name, spec.policies(row), by))

    @AdminCommand
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]:
        """Pause a schedule. Skipped runs are recorded as paused.

        Args:
            name: The schedule's name.
            by: Who is doing this and why, for the audit log.
            until: When to resume automatically, as an aware datetime (default: never).

        Returns:
            The schedule.

        Raises:
            InvalidValue: The schedule does not exist, or `until` has no time zone.
        """
        return self._store.schedules.pause(name, by, until=aware(until, "until"))

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, name: str, by: By) -> Op[ScheduleRow]:
        """Resume a paused schedule, starting with its next run.

        Args:
            name: The schedule's name.
            by: Who is doing this and why, for the audit log.

        Returns:
            The schedule.

        Raises:
            InvalidValue: The schedule does not exist.
        """
        return self._store.schedules.resume(name, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def delete(self, name: str, by: By) -> Op[ScheduleRow]:
        """Delete a schedule that no code declares. Its past runs and jobs are kept.

        Args:
            name: The schedule's name.
            by: Who is doing this and why, for the audit log.

        Returns:
            The deleted schedule.

        Raises:
            InvalidValue: The schedule does not exist, or code declares it.
        """
        return self._store.schedules.delete(name, by)

    adelete: Final = AsyncTwin(delete)

    @AdminCommand
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue the schedule's job now, in addition to its regular runs.

        Args:
            name: The schedule's name.
            by: Who is doing this and why, for the audit log.
            key: Repeating the call with this key doesn't create a second job until one day after
                the first one ends.

        Returns:
            The job's id, and whether it is new.

        Raises:
            InvalidValue: The schedule does not exist.
        """
        return self._store.schedules.run(name, by, key=key)

    arun: Final = AsyncTwin(run)

    @AdminCommand
    def ticks(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]:
        """List a schedule's past runs, newest first.

        Args:
            name: The schedule's name.
            before: Only runs before this aware datetime, to get the next page.
            count: The page size, 1 to 1,000 (default: 50).

        Returns:
            The runs, with their outcomes.

        Raises:
            InvalidValue: `count` or `before` is invalid.
        """
        check_page_size(count)
        return self._store.ticks.list(name, before=aware(before, "before"), count=count)

    aticks: Final = AsyncTwin(ticks)

    @AdminCommand
    def recent_runs(self, names: Sequence[str], *, ticks: int = 20) -> Op[Mapping[str, RecentRuns]]:
        """Get several schedules' last runs, and the state of each one's last job.

        Args:
            names: Up to 1,000 schedule names.
            ticks: How many runs per schedule, 1 to 1,000 (default: 20).

        Returns:
            The recent runs by schedule name, newest first.

        Raises:
            InvalidValue: There are too many names, or `ticks` is out of range.
        """
        check_page_size(len(names) or 1)
        check_page_size(ticks)
        return self._store.inspection.recent_runs(names, count=ticks)

    arecent_runs: Final = AsyncTwin(recent_runs)

    @AdminCommand
    def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Op[Sequence[Run]]:
        """Preview a schedule's next runs.

        Args:
            name: The schedule's name.
            count: How many runs, 1 to 1,000 (default: 10).
            after: Only runs after this aware datetime (default: now, by the database's clock).

        Returns:
            The next runs.

        Raises:
            InvalidValue: The schedule does not exist, or `count` is out of range.
        """
        row = yield from self._found(name)
        now = yield from self._now()
        return _runs(row, after or now, count)

    apreview: Final = AsyncTwin(preview)

    preview_timing: Final = staticmethod(preview_timing)
