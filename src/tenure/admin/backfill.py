"""Backfill: create jobs for past ticks that never got one."""

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
    """A timing's ticks between two datetimes, inclusive."""

    timing: Timing
    since: datetime
    until: datetime

    def ticks(self) -> Sequence[datetime]:
        """Return the ticks in order.

        Raises:
            InvalidValue: There are too many for one backfill.
        """
        every = timing.between(self.timing, self.since - _INSTANT, self.until)
        ticks = list(islice(every, MOST_ITEMS + 1))
        if len(ticks) > MOST_ITEMS:
            raise InvalidValue(
                f"a backfill must have at most {MOST_ITEMS:,} ticks, got more; backfill a shorter "
                "time at once"
            )
        return ticks

    def refuse_forgotten(self, made_at: datetime, kept_since: datetime) -> None:
        """Reject ticks that may have created jobs, but whose rows have since been removed.

        Args:
            made_at: When the schedule was created.
            kept_since: The oldest tick still kept.

        Raises:
            InvalidValue: The window includes such ticks.
        """
        first = max(self.since, made_at)
        if first < min(self.until, kept_since):
            raise InvalidValue(
                f"since must be {kept_since:%Y-%m-%d %H:%M}Z or later, got "
                f"{self.since:%Y-%m-%d %H:%M}Z, as Tenure no longer knows which older ticks had a "
                "job; start later, or pass `forgotten` to create a job for every older tick"
            )


def window(row: ScheduleRow, since: datetime, until: datetime, now: datetime) -> Window:
    """Return a backfill's window. The schedule itself handles ticks that haven't run yet."""
    aware(since, "since")
    aware(until, "until")
    if since > until:
        raise InvalidValue(f"since must not be after until ({until}), got {since}; swap them")
    if since > now:
        raise InvalidValue(f"since must be in the past, got {since}; the schedule fires the rest")
    last = min(until, now)
    if row.next_at is not None:
        last = min(last, row.next_at - _INSTANT)
    return Window(row.timing, since.astimezone(UTC), last.astimezone(UTC))


_KEPT = "keep_ticks_days"


class BackfillCommands(CommandGroup):
    """The `backfill` command.

    It isn't a single store operation, because finding a million ticks takes a while and must not
    happen inside a transaction.
    """

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
        """Start an operation that creates jobs for past ticks that never got one.

        It covers up to 1,000,000 ticks. Workers create the jobs.

        Args:
            name: The schedule's name.
            since: The first tick, as an aware datetime.
            until: The last tick, as an aware datetime.
            by: Who is doing this and why, for the audit log.
            rate: How many jobs to create per second (default: 500).
            forgotten: Include ticks whose rows were already removed, even though they may have had
                a job.
            dry_run: Only count the ticks (default: False).

        Returns:
            The operation. Its `total` is the number of ticks.

        Raises:
            InvalidValue: The schedule does not exist, or the window is invalid.
        """
        check_actor(by)
        row, wanted = self._run(self._window(name, since, until, forgotten=forgotten))
        new = _new_backfill(row, wanted, rate)
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
        """Async version of `backfill`.

        Args:
            name: The schedule's name.
            since: The first tick, as an aware datetime.
            until: The last tick, as an aware datetime.
            by: Who is doing this and why, for the audit log.
            rate: How many jobs to create per second (default: 500).
            forgotten: Include ticks whose rows were already removed.
            dry_run: Only count the ticks (default: False).

        Returns:
            The operation.
        """
        check_actor(by)
        row, wanted = await self._arun(self._window(name, since, until, forgotten=forgotten))
        new = await on_a_thread(lambda: _new_backfill(row, wanted, rate))
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


def _new_backfill(row: ScheduleRow, wanted: Window, rate: int) -> NewBackfill:
    return NewBackfill(
        schedule=row.name,
        queue=row.job.queue,
        since=wanted.since,
        until=wanted.until,
        fire_ats=wanted.ticks(),
        rate=rate,
    )
