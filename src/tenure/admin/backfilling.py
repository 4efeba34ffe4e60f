"""The verb that fills the past of a schedule, in both worlds; and what the others share with it."""

from datetime import datetime, timedelta

from tenure._model.audit import By
from tenure._model.operation import NewBackfill, OperationRow
from tenure._model.schedule import ScheduleRow
from tenure._rules.operations import DEFAULT_RATE
from tenure._rules.schedules import unknown
from tenure._rules.settings import BUILT_IN
from tenure._store.port import Op
from tenure.admin.backfills import Window, window
from tenure.admin.faces import Verbs, check_by, on_a_thread, rehearsed

_KEPT = "keep_ticks_days"


class Backfilling(Verbs):
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
        check_by(by)
        row, wanted = self.perform(self._window(name, since, until, forgotten=forgotten))
        new = _asked(row, wanted, rate)
        return self.perform(self._started(new, by, dry_run=dry_run))

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
        check_by(by)
        row, wanted = await self.aperform(self._window(name, since, until, forgotten=forgotten))
        new = await on_a_thread(lambda: _asked(row, wanted, rate))
        return await self.aperform(self._started(new, by, dry_run=dry_run))

    def _started(self, new: NewBackfill, by: By, *, dry_run: bool) -> Op[OperationRow]:
        if dry_run:
            return rehearsed(self._store.start_backfill(new, by, keep=False))
        return self._store.start_backfill(new, by)

    def _window(
        self, name: str, since: datetime, until: datetime, *, forgotten: bool
    ) -> Op[tuple[ScheduleRow, Window]]:
        row = yield from self._found(name)
        now = yield from self._now()
        wanted = window(row, since, until, now)
        if not forgotten:
            settings = yield from self._store.settings()
            days = settings.get(_KEPT, BUILT_IN[_KEPT])
            wanted.refuse_forgotten(row.created_at, now - timedelta(days=days))
        return row, wanted

    def _found(self, name: str, *, lock: bool = False) -> Op[ScheduleRow]:
        row = yield from self._store.schedule(name, lock=lock)
        if row is None:
            raise unknown(name)
        return row

    def _now(self) -> Op[datetime]:
        server = yield from self._store.condition()
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
