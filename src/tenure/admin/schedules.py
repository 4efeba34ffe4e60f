"""What an operator can see of schedules, and do to them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from tenure._model.audit import By
from tenure._model.job import EnqueueResult
from tenure._model.schedule import Missed, Overlap, RecentRuns, ScheduleRow, TickRow
from tenure._rules import schedules as rules
from tenure._store.steps import Op, atomically
from tenure.admin import schedule_spec
from tenure.admin._commands import AdminCommand, AsyncTwin
from tenure.admin.backfill import BackfillCommands
from tenure.admin.schedule_spec import (
    AnyTask,
    DeclaredLiteral,
    MissedWord,
    OverlapWord,
    Run,
    ScheduleSpec,
    aware,
)
from tenure.errors import InvalidValue
from tenure.task import Seconds

_LONGEST_PAGE = 1000


class Schedules(BackfillCommands):
    """The verbs over schedules: `app.schedules`. What code declares, code owns: its times, its
    task and its arguments are changed there; the rest here."""

    @AdminCommand
    def list(self, *, after: str = "", count: int = 100) -> Op[Sequence[ScheduleRow]]:
        """Schedules by name, above a name."""
        _check_count(count)
        return self._store.schedules(after=after, count=count)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def get(self, name: str) -> Op[ScheduleRow | None]:
        """The schedule of this name, or None."""
        return self._store.schedule(name)

    aget: Final = AsyncTwin(get)

    @AdminCommand
    def create(
        self,
        name: str,
        task: AnyTask,
        by: By,
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        at: datetime | None = None,
        timezone: str = "UTC",
        args: Mapping[str, object] | None = None,
        queue: str | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        timeout: Seconds | None = None,
        expires_in: Seconds | None = None,
        tags: Sequence[str] = (),
        missed: MissedWord = Missed.LATEST,
        missed_within: Seconds | None = None,
        missed_most: int | None = None,
        overlap: OverlapWord = Overlap.ALLOW,
        jitter: Seconds = 0,
    ) -> Op[ScheduleRow]:
        """Make a schedule. Of a registered task the arguments are checked and the options taken;
        of one that is only named, what is not given is the queue's, the settings', or built in."""
        said = ScheduleSpec(
            cron=cron,
            every=every,
            at=at,
            timezone=timezone,
            args=args,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            expires_in=expires_in,
            tags=tags,
            missed=missed,
            missed_within=missed_within,
            missed_most=missed_most,
            overlap=overlap,
            jitter=jitter,
        )
        new = said.new(name, task)
        rules.check(new)
        return self._store.create_schedule(new, by)

    acreate: Final = AsyncTwin(create)

    @AdminCommand
    def update(
        self,
        name: str,
        by: By,
        *,
        task: AnyTask | None = None,
        cron: str | None = None,
        every: Seconds | None = None,
        at: datetime | None = None,
        timezone: str | None = None,
        args: Mapping[str, object] | None = None,
        queue: str | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        timeout: Seconds | None = None,
        expires_in: Seconds | None = None,
        tags: Sequence[str] | None = None,
        missed: MissedWord | DeclaredLiteral | None = None,
        missed_within: Seconds | DeclaredLiteral | None = None,
        missed_most: int | DeclaredLiteral | None = None,
        overlap: OverlapWord | None = None,
        jitter: Seconds | DeclaredLiteral | None = None,
    ) -> Op[ScheduleRow]:
        """Change what is given, and leave the rest. A `task` brings its own options, and has the
        arguments checked. Of a schedule that code declares only `missed`, `missed_within`,
        `missed_most` and `jitter` are changed here; `"declared"` gives one back to the code."""
        said = ScheduleSpec(
            task=task,
            cron=cron,
            every=every,
            at=at,
            timezone=timezone,
            args=args,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            expires_in=expires_in,
            tags=tags,
            missed=missed,
            missed_within=missed_within,
            missed_most=missed_most,
            overlap=overlap,
            jitter=jitter,
        )
        return atomically(self._update(name, said, by))

    aupdate: Final = AsyncTwin(update)

    def _update(self, name: str, said: ScheduleSpec, by: By) -> Op[ScheduleRow]:
        row = yield from self._found(name, lock=True)
        if row.program is None:
            new = said.changed(row)
            rules.check(new)
            return (yield from self._store.update_schedule(new, by))
        change = said.policies(row)
        rules.check_policy(change)
        return (yield from self._store.set_policy(name, change, by))

    @AdminCommand
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]:
        """Let ticks make no jobs, until then or until resumed; each is recorded as paused."""
        return self._store.pause_schedule(name, by, until=aware(until, "until"))

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, name: str, by: By) -> Op[ScheduleRow]:
        """Let a paused schedule's ticks make jobs again, from the next one on."""
        return self._store.resume_schedule(name, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def delete(self, name: str, by: By) -> Op[ScheduleRow]:
        """Remove a schedule that no code declares any more; its ticks and jobs stay."""
        return self._store.delete_schedule(name, by)

    adelete: Final = AsyncTwin(delete)

    @AdminCommand
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue the schedule's job now, beside its ticks. The same key makes no second one,
        until a day after that job has ended."""
        return self._store.run_schedule(name, by, key=key)

    arun: Final = AsyncTwin(run)

    @AdminCommand
    def ticks(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]:
        """The past runs: recorded ticks, newest first, before an instant."""
        _check_count(count)
        return self._store.ticks(name, before=aware(before, "before"), count=count)

    aticks: Final = AsyncTwin(ticks)

    @AdminCommand
    def recent_runs(self, names: Sequence[str], *, ticks: int = 20) -> Op[Mapping[str, RecentRuns]]:
        """What each of these schedules came to: its last ticks, newest first, and the state of the
        job that the last one made."""
        _check_count(len(names) or 1)
        _check_count(ticks)
        return self._store.recent_runs(names, count=ticks)

    arecent_runs: Final = AsyncTwin(recent_runs)

    @AdminCommand
    def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Op[Sequence[Run]]:
        """The next runs of a schedule, after an instant or now by the database's clock."""
        row = yield from self._found(name)
        now = yield from self._now()
        return schedule_spec.runs(row, after or now, count)

    apreview: Final = AsyncTwin(preview)

    preview_timing: Final = staticmethod(schedule_spec.preview_timing)


def _check_count(count: int) -> None:
    if not 1 <= count <= _LONGEST_PAGE:
        raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
