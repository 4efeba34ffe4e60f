"""Statistics and the overview. They are read-only and never count unlimited numbers of rows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure._model.job import State
from tenure._model.overview import DayCounts, Overview, OverviewCounts, QueueSummary
from tenure._model.queue import EVERY_QUEUE
from tenure._model.stats import Count, LateWork, Stats, Storage, Totals
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules import alerts
from tenure._rules.liveness import is_paused, live, serving, unknown_to_all
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup
from tenure.config import duration
from tenure.task import Seconds


class StatsCommands(CommandGroup):
    """Commands that return statistics."""

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
        """Get outcomes, wait times and run times, in total and per step.

        Each minute's numbers are available about 10 s after it ends.

        Args:
            queue: Only this queue.
            task: Only this task.
            since: The start (default: one hour before `until`).
            until: The end (default: the last whole minute).
            step: The step length, in whole minutes (default: 60 s).

        Returns:
            The statistics.

        Raises:
            InvalidValue: The time range or the step is invalid.
        """
        return self._store.stats.over_time(
            queue=queue, task=task, since=since, until=until, step=duration(step)
        )

    astats: Final = AsyncTwin(stats)

    @AdminCommand
    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """Count ended jobs by queue and task, for programs that keep their own running totals.

        Args:
            since: The time to count from (default: one hour ago). In the next call, pass
                this call's `settled_to`.

        Returns:
            The counts, and `settled_to`.
        """
        return self._store.stats.totals(since)

    atotals: Final = AsyncTwin(totals)

    @AdminCommand
    def lateness(self) -> Op[LateWork]:
        """Find overdue leases, schedules and operations, and count ticks in the last hour.

        Returns:
            The overdue work.
        """
        return self._store.overview.lateness()

    alateness: Final = AsyncTwin(lateness)

    @AdminCommand
    def storage(self) -> Op[Storage]:
        """Get table sizes, dead rows, and what is blocking vacuum.

        Returns:
            The storage statistics.
        """
        return self._store.overview.storage()

    astorage: Final = AsyncTwin(storage)


_COMPLETIONS = 10
# A live page repeats this query, so each queue's count stops at a tenth of the `depths` limit.
_COUNTED = 1000
_WORKERS = 100
_NAMED = 3


class OverviewCommands(CommandGroup):
    """The command that summarizes the installation."""

    @AdminCommand
    def overview(self) -> Op[Overview]:
        """Summarize the installation: numbers, alerts, queues, workers and latest completions.

        Returns:
            The overview.
        """
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
            unknown_tasks=(yield from waiting_tasks(self._store, unknown_to_all(workers))),
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


def waiting_tasks(store: Store, tasks: Sequence[str]) -> Op[Sequence[str]]:
    """Return the tasks that have queued jobs.

    If the search for a task was cut short, the task is included, because the oldest jobs are
    searched last.
    """
    waiting: list[str] = []
    for task in tasks:
        page = yield from store.job_queries.list(State.QUEUED, task=task, count=1)
        if page.jobs or page.next is not None:
            waiting.append(task)
    return waiting


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
