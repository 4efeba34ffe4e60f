"""Stats, queue depths, groups of failures, the overview, explanations.

What an operator can see in figures: what ended, how much waits, how dead letters group, and
why a job is not running. Nothing here changes anything, or counts an unbounded set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tenure._model.explanation import Explanation
from tenure._model.overview import DayCounts, Overview, OverviewCounts, QueueSummary
from tenure._model.queue import EVERY_QUEUE
from tenure._model.stats import Count, Depth, FailedGroup, LateWork, Stats, Storage, Totals
from tenure._model.worker import WorkerRow, WorkerState
from tenure._rules import alerts, explain, idempotency, paging
from tenure._rules.liveness import is_paused, live, serving
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Seconds

_LONGEST_PAGE = 1000


@dataclass(frozen=True, slots=True)
class FailedGroups:
    """A page of groups, by task and signature. `next` is None at the end alone."""

    groups: Sequence[FailedGroup]
    next: str | None


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
        return self._store.stats(
            queue=queue, task=task, since=since, until=until, step=duration(step)
        )

    astats: Final = AsyncTwin(stats)

    @AdminCommand
    def depths(self) -> Op[Sequence[Depth]]:
        """How much there is in each known queue: exact up to 10,000 each, zeros too."""
        return self._store.depths()

    adepths: Final = AsyncTwin(depths)

    @AdminCommand
    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, for who counts on: the next time from
        `settled_to`. Without an instant, of the last hour: to begin with."""
        return self._store.totals(since)

    atotals: Final = AsyncTwin(totals)

    @AdminCommand
    def lateness(self) -> Op[LateWork]:
        """What should have been done and was not: leases to end, schedules, operations; and what
        the ticks of the last hour came to."""
        return self._store.lateness()

    alateness: Final = AsyncTwin(lateness)

    @AdminCommand
    def storage(self) -> Op[Storage]:
        """How large the tables are, their dead rows, and what keeps those from being removed."""
        return self._store.storage()

    astorage: Final = AsyncTwin(storage)

    @AdminCommand
    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int = 50,
        after: str | None = None,
    ) -> Op[FailedGroups]:
        """Dead letters by task and error signature, in this order, counted up to 10,000 each;
        `after` is the last page's `next`. Of one queue some 10,000 are looked at in all, and the
        counts say whether there are more."""
        if not 1 <= count <= _LONGEST_PAGE:
            raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
        place = None if after is None else paging.group(after)
        groups = yield from self._store.failed_groups(
            queue=queue, task=task, count=count, after=place
        )
        full = len(groups) == count
        last = paging.group_token(groups[-1].task, groups[-1].signature) if full else None
        return FailedGroups(groups, last)

    afailed_groups: Final = AsyncTwin(failed_groups)

    @AdminCommand
    def why(self, job_id: int | str) -> Op[Explanation]:
        """Where a job stands: why it is not running, or who runs it, or how it ended."""
        said = idempotency.job_id(job_id)
        facts = yield from self._store.facts(said)
        return explain.nowhere(said) if facts is None else explain.explain(facts)

    awhy: Final = AsyncTwin(why)


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
        pulse = yield from self._store.pulse()
        workers = yield from self._store.workers()
        depths = yield from self._store.depths(most=_COUNTED)
        names = [depth.queue for depth in depths]
        retrying = yield from self._store.retrying(names)
        hours = yield from self._store.hours(names)
        rows = {row.name: row for row in (yield from self._store.queues())}
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
        holders = yield from self._store.holders(count=_NAMED)
        figures = alerts.AlertInputs(
            now=pulse.now,
            pulse=pulse,
            queues=queues,
            every_queue=rows.get(EVERY_QUEUE),
            workers=workers,
            lateness=(yield from self._store.lateness()),
            late_schedules=(
                yield from self._store.late_schedules(alerts.FIRED_WITHIN, count=_NAMED)
            ),
            overdue=(yield from self._store.overdue(alerts.RESCUED_WITHIN, count=_NAMED)),
            holders=[holder for holder in holders if alerts.matters(holder)],
        )
        shown, left_out = alerts.find_alerts(figures)
        return Overview(
            now=pulse.now,
            words=alerts.words(figures, found=len(shown) + left_out),
            numbers=_numbers(pulse, queues, workers, retrying),
            attention=shown,
            left_out=left_out,
            queues=queues,
            workers=sorted(_there(workers), key=_order)[:_WORKERS],
            completions=(yield from self._store.completions(count=_COMPLETIONS)),
        )

    aoverview: Final = AsyncTwin(overview)


def _numbers(
    pulse: DayCounts, queues: Sequence[QueueSummary], workers: Sequence[WorkerRow], retrying: Count
) -> OverviewCounts:
    depths = [queue.depth for queue in queues]
    active = [worker for worker in live(workers) if worker.state is WorkerState.ACTIVE]
    return OverviewCounts(
        due=_sum(depth.due for depth in depths),
        later=_sum(depth.later for depth in depths),
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
