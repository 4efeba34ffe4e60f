"""The verb that fills the past of a schedule, in both worlds; and what the others share with it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta

from tenure._model.audit import By
from tenure._model.schedule import Backfilled, ScheduleRow
from tenure._rules.schedules import unknown
from tenure._rules.settings import BUILT_IN
from tenure._store.port import Op
from tenure.admin.backfills import BackfillProgress, Window, window
from tenure.admin.faces import Verbs, on_a_thread, rehearsed

_KEPT = "keep_ticks_days"


class Backfilling(Verbs):
    """The verb `backfill`. It is no single operation: each stretch is one."""

    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        by: By,
        *,
        forgotten: bool = False,
        dry_run: bool = False,
    ) -> Iterator[BackfillProgress]:
        """Make the jobs of past ticks that have none, from `since` to `until`, both included; what
        is due and not fired yet is left to the schedule. Goes on as it is iterated, a transaction
        of at most 500 ticks at a time, and tells how far it has come. A tick that has its job is
        left alone, so that the same again goes on where this one was stopped. Ticks are kept for
        some days only: older ones may have had their jobs, and are refused unless `forgotten`."""
        wanted = self.perform(self._window(name, since, until, forgotten=forgotten))
        return self._backfill(name, wanted, by, dry_run=dry_run)

    async def abackfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        by: By,
        *,
        forgotten: bool = False,
        dry_run: bool = False,
    ) -> AsyncIterator[BackfillProgress]:
        """The same in the async world."""
        wanted = await self.aperform(self._window(name, since, until, forgotten=forgotten))
        progress = await on_a_thread(wanted.start)
        for stretch in wanted.stretches():
            came = await self.aperform(self._fill(name, stretch, by, dry_run=dry_run))
            progress = progress.and_then(stretch, came)
            yield progress

    def _backfill(
        self, name: str, wanted: Window, by: By, *, dry_run: bool
    ) -> Iterator[BackfillProgress]:
        progress = wanted.start()
        for stretch in wanted.stretches():
            came = self.perform(self._fill(name, stretch, by, dry_run=dry_run))
            progress = progress.and_then(stretch, came)
            yield progress

    def _fill(
        self, name: str, stretch: Sequence[datetime], by: By, *, dry_run: bool
    ) -> Op[Backfilled]:
        op = self._store.backfill(name, stretch, by)
        return rehearsed(op) if dry_run else op

    def _window(
        self, name: str, since: datetime, until: datetime, *, forgotten: bool
    ) -> Op[Window]:
        row = yield from self._found(name)
        now = yield from self._now()
        wanted = window(row, since, until, now)
        if not forgotten:
            settings = yield from self._store.settings()
            days = settings.get(_KEPT, BUILT_IN[_KEPT])
            wanted.refuse_forgotten(row.created_at, now - timedelta(days=days))
        return wanted

    def _found(self, name: str, *, lock: bool = False) -> Op[ScheduleRow]:
        row = yield from self._store.schedule(name, lock=lock)
        if row is None:
            raise unknown(name)
        return row

    def _now(self) -> Op[datetime]:
        server = yield from self._store.condition()
        now: datetime = server["now"]
        return now
