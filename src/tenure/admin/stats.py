"""Stats, queue depths, groups of failures, the overview, explanations.

What an operator can see in figures: what ended, how much waits, how dead letters group, and
why a job is not running. Nothing here changes anything, or counts an unbounded set.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure._model.overview import DayCounts, Overview, OverviewCounts, QueueSummary
from tenure._model.queue import EVERY_QUEUE
from tenure._model.stats import Count, LateWork, Stats, Storage, Totals
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules import alerts
from tenure._rules.liveness import is_paused, live, serving
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup
from tenure.config import duration
from tenure.task import Seconds


class StatsCommands(CommandGroup):
    """The verbs that count and explain."""

    @AdminCommand
    def stats(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: Seconds = 60,
    ) -> Op[Stats]:
        """What ended over a time, whole and in steps of whole minutes: outcomes, and how long
        attempts waited and ran. By default the hour up to the last whole minute, minute by minute.
        A minute is counted some ten seconds after its end."""
        return self._store.stats.over_time(
            queue=queue, task=task, since=since, until=until, step=duration(step)
        )

    astats: Final = AsyncTwin(stats)

    @AdminCommand
    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, for who counts on: the next time from
        `settled_to`. Without an instant, of the last hour: to begin with."""
        return self._store.stats.totals(since)

    atotals: Final = AsyncTwin(totals)

    @AdminCommand
    def lateness(self) -> Op[LateWork]:
        """What should have been done and was not: leases to end, schedules, operations; and what
        the ticks of the last hour came to."""
        return self._store.overview.lateness()

    alateness: Final = AsyncTwin(lateness)

    @AdminCommand
    def storage(self) -> Op[Storage]:
        """How large the tables are, their dead rows, and what keeps those from being removed."""
        return self._store.overview.storage()

    astorage: Final = AsyncTwin(storage)


_COMPLETIONS = 10
# A page that is live asks again and again: of each queue a tenth of what `depths` counts.
_COUNTED = 1000
_WORKERS = 100
_NAMED = 3


class OverviewCommands(CommandGroup):
    """The verb that looks at all of it."""

    @AdminCommand
    def overview(self) -> Op[Overview]:
        """The installation at a glance: its numbers, what needs attention in sentences (and in
        words when all is well), its queues and workers, what was completed last."""
        pulse = yield from self._store.overview.pulse()
        workers = yield from self._store.workers.list()
        depths = yield from self._store.stats.depths(most=_COUNTED)
        names = [depth.queue for depth in depths]
        retrying = yield from self._store.overview.retrying(names)
        hours = yield from self._store.overview.hours(names)
        rows = {row.name: row for row in (yield from self._store.queues.list())}
        queues = [
            QueueSummary(
                depth=depth,
                set=rows.get(depth.queue),
                paused=is_paused(rows.get(depth.queue), pulse.now),
                workers=len(serving(workers, depth.queue)),
                last_hour=hours[depth.queue][0],
                hour_before=hours[depth.queue][1],
            )
            for depth in depths
        ]
        holders = yield from self._store.overview.holders(count=_NAMED)
        figures = alerts.AlertInputs(
            now=pulse.now,
            pulse=pulse,
            queues=queues,
            every_queue=rows.get(EVERY_QUEUE),
            workers=workers,
            lateness=(yield from self._store.overview.lateness()),
            late_schedules=(
                yield from self._store.overview.late_schedules(alerts.FIRED_WITHIN, count=_NAMED)
            ),
            overdue=(yield from self._store.leases.overdue(alerts.RESCUED_WITHIN, count=_NAMED)),
            holders=[holder for holder in holders if alerts.matters(holder)],
        )
        shown, more = alerts.find_alerts(figures)
        return Overview(
            now=pulse.now,
            words=alerts.words(figures, found=len(shown) + more),
            numbers=_numbers(pulse, queues, workers, retrying),
            attention=shown,
            more=more,
            queues=queues,
            workers=sorted(_there(workers), key=_order)[:_WORKERS],
            completions=(yield from self._store.overview.completions(count=_COMPLETIONS)),
        )

    aoverview: Final = AsyncTwin(overview)


def _numbers(
    pulse: DayCounts, queues: Sequence[QueueSummary], workers: Sequence[WorkerRow], retrying: Count
) -> OverviewCounts:
    depths = [queue.depth for queue in queues]
    active = [worker for worker in live(workers) if worker.state is WorkerState.ACTIVE]
    return OverviewCounts(
        due=_sum(depth.due for depth in depths),
        scheduled=_sum(depth.scheduled for depth in depths),
        running=_sum(depth.running for depth in depths),
        expired=pulse.expired,
        retrying=retrying,
        held=_sum(depth.held for depth in depths),
        failed=_sum(depth.failed for depth in depths),
        oldest_due=max((d.oldest_due_age for d in depths if d.oldest_due_age), default=None),
        completed_today=pulse.completed_today,
        failed_day=pulse.failed_day,
        workers_active=len(active),
        workers_total=len(_there(workers)),
    )


def _sum(counts: Iterable[Count]) -> Count:
    every = list(counts)
    return Count(sum(count.value for count in every), any(count.more for count in every))


def _there(workers: Sequence[WorkerRow]) -> list[WorkerRow]:
    return [worker for worker in workers if worker.state is not WorkerState.OFFLINE]


def _order(worker: WorkerRow) -> tuple[bool, str, str]:
    return bool(live([worker])), worker.host, worker.name
