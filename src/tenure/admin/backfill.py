"""Backfills: past ticks that have no job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from tenure._model.audit import By
from tenure._model.operation import NewBackfill, OperationRow
from tenure._model.schedule import ScheduleRow, Timing
from tenure._rules import timing
from tenure._rules.operations import DEFAULT_RATE, MOST_ITEMS
from tenure._rules.runtime_settings import BUILT_IN
from tenure._rules.schedules import unknown
from tenure._schedule_spec import aware
from tenure._store.steps import Op
from tenure.admin._commands import CommandGroup, as_dry_run, check_actor, on_a_thread
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


_KEPT = "keep_ticks_days"


class BackfillCommands(CommandGroup):
    """The verb `backfill`. It is no single operation of the store: ticks are found in between, and
    a million of them take their time."""

    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        by: By,
        *,
        rate: int = DEFAULT_RATE,
        forgotten: bool = False,
        dry_run: bool = False,
    ) -> OperationRow:
        """Freeze which past ticks have no job, from `since` to `until`, both included, at most
        1,000,000; and have workers make these jobs, `rate` a second. What is due and not fired yet
        is left to the schedule. The answer's `total` says how many they are; in a dry run that is
        all, and nobody has the answer's id. Ticks are kept for some days only: older ones may have
        had their jobs, and are refused unless `forgotten`."""
        check_actor(by)
        row, wanted = self._run(self._window(name, since, until, forgotten=forgotten))
        new = _asked(row, wanted, rate)
        return self._run(self._started(new, by, dry_run=dry_run))

    async def abackfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        by: By,
        *,
        rate: int = DEFAULT_RATE,
        forgotten: bool = False,
        dry_run: bool = False,
    ) -> OperationRow:
        """The same in the async world."""
        check_actor(by)
        row, wanted = await self._arun(self._window(name, since, until, forgotten=forgotten))
        new = await on_a_thread(lambda: _asked(row, wanted, rate))
        return await self._arun(self._started(new, by, dry_run=dry_run))

    def _started(self, new: NewBackfill, by: By, *, dry_run: bool) -> Op[OperationRow]:
        if dry_run:
            return as_dry_run(self._store.operations.start_backfill(new, by, keep=False))
        return self._store.operations.start_backfill(new, by)

    def _window(
        self, name: str, since: datetime, until: datetime, *, forgotten: bool
    ) -> Op[tuple[ScheduleRow, Window]]:
        row = yield from self._found(name)
        now = yield from self._now()
        wanted = window(row, since, until, now)
        if not forgotten:
            settings = yield from self._store.settings.changed()
            days = settings.get(_KEPT, BUILT_IN[_KEPT])
            wanted.refuse_forgotten(row.created_at, now - timedelta(days=days))
        return row, wanted

    def _found(self, name: str, *, lock: bool = False) -> Op[ScheduleRow]:
        row = yield from self._store.schedules.get(name, lock=lock)
        if row is None:
            raise unknown(name)
        return row

    def _now(self) -> Op[datetime]:
        server = yield from self._store.inspection.server_info()
        return server.now


def _asked(row: ScheduleRow, wanted: Window, rate: int) -> NewBackfill:
    return NewBackfill(
        schedule=row.name,
        queue=row.job.queue,
        since=wanted.since,
        until=wanted.until,
        fire_ats=wanted.ticks(),
        rate=rate,
    )
