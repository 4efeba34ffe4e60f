"""An installation at a glance: one verb, made of figures that are each cheap and bounded."""

from collections.abc import Iterable, Sequence
from typing import Final

from tenure._model.overview import Numbers, Overview, Pulse, QueueFigures
from tenure._model.queue import EVERY_QUEUE
from tenure._model.stats import Count
from tenure._model.worker import Presence, WorkerRow
from tenure._rules import attention as rules
from tenure._rules import holding
from tenure._rules.pausing import is_paused
from tenure._rules.presence import live, serving
from tenure._store.port import Op
from tenure.admin.faces import Twin, Verb, Verbs

_COMPLETIONS = 10
# A page that is live asks again and again: of each queue a tenth of what `depths` counts.
_COUNTED = 1000
_WORKERS = 100
_NAMED = 3


class Glance(Verbs):
    """The verb that looks at all of it."""

    @Verb
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
            QueueFigures(
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
        figures = rules.Figures(
            now=pulse.now,
            pulse=pulse,
            queues=queues,
            every_queue=rows.get(EVERY_QUEUE),
            workers=workers,
            lateness=(yield from self._store.lateness()),
            late_schedules=(
                yield from self._store.late_schedules(rules.FIRED_WITHIN, count=_NAMED)
            ),
            overdue=(yield from self._store.overdue(rules.RESCUED_WITHIN, count=_NAMED)),
            holders=[holder for holder in holders if holding.matters(holder)],
        )
        shown, left_out = rules.attention(figures)
        return Overview(
            now=pulse.now,
            words=rules.words(figures, found=len(shown) + left_out),
            numbers=_numbers(pulse, queues, workers, retrying),
            attention=shown,
            left_out=left_out,
            queues=queues,
            workers=sorted(_there(workers), key=_order)[:_WORKERS],
            completions=(yield from self._store.completions(count=_COMPLETIONS)),
        )

    aoverview: Final = Twin(overview)


def _numbers(
    pulse: Pulse, queues: Sequence[QueueFigures], workers: Sequence[WorkerRow], retrying: Count
) -> Numbers:
    depths = [queue.depth for queue in queues]
    active = [worker for worker in live(workers) if worker.state is Presence.ACTIVE]
    return Numbers(
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
    return [worker for worker in workers if worker.state is not Presence.OFFLINE]


def _order(worker: WorkerRow) -> tuple[bool, str, str]:
    return bool(live([worker])), worker.host, worker.name
