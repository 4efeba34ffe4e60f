"""Write the metrics page, and count requests."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from tenure import _metrics
from tenure._metrics import MetricsPage
from tenure.admin import BOUNDS, live
from tenure.server.metrics.collector import Collector, CounterTable, Snapshot
from tenure.types import EVERY_QUEUE, Depth, LateWork, QueueRow, WorkerRow

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Requests:
    """The outermost ASGI middleware, which counts requests.

    All paths without a route share one label, because there could be any number of them.
    """

    def __init__(self, app: "ASGIApp", *, counts: "Counter[tuple[str, str, str]]") -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, and count its status."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: "Message") -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "(others)"
                route = getattr(scope.get("route"), "path", "(others)")
                self._counts[method, route, str(message["status"])] += 1
            await send(message)

        await self._app(scope, receive, counted)


# How many queues get gauges. The queues whose oldest job has waited longest come first.
MOST_QUEUES = 500
_STATES = ("due", "scheduled", "running", "held", "failed")


def write(page: MetricsPage, rounds: Collector, found: Snapshot) -> None:
    """Write all metrics.

    If the database is down, its gauges are omitted and its counters keep their last values.
    """
    page.put(_metrics.DATABASE_UP, found.up)
    page.put(_metrics.COLLECTION_SECONDS, found.took)
    page.put(_metrics.COLLECTION_AGE, monotonic() - found.began_at)
    for part, answered in found.answered.items():
        page.put(_metrics.PART_UP, answered, part)
    for whole, count in rounds.done.items():
        page.put(_metrics.COLLECTIONS, count, "whole" if whole else "short")
    _counters(page, rounds.counters)
    if found.counts_age is not None:
        page.put(_metrics.COUNTS_AGE, found.counts_age.total_seconds())
    if found.depths is not None:
        _queues(page, found.depths, found.queues, found.workers)
    if found.workers is not None:
        _workers(page, found.workers)
    if found.lateness is not None:
        _lateness(page, found.lateness)
    if found.storage is not None:
        for each in found.storage.tables:
            page.put(_metrics.TABLE_BYTES, each.bytes, each.name)
            page.put(_metrics.LIVE_ROWS, each.live_rows, each.name)
            page.put(_metrics.DEAD_ROWS, each.dead_rows, each.name)
        oldest = found.storage.oldest
        page.put(_metrics.HORIZON, found.storage.horizon)
        page.put(_metrics.OLDEST, 0 if oldest is None else oldest.total_seconds())


def _counters(page: MetricsPage, counters: CounterTable) -> None:
    page.put(_metrics.SERIES_DROPPED, counters.cut, "tasks")
    for pair, counted in counters:
        for ending, count in counted.outcomes.items():
            page.put(_metrics.ATTEMPTS, count, *pair, str(ending))
        page.spread(_metrics.WAIT, BOUNDS, counted.waits, counted.wait_sum, *pair)
        page.spread(_metrics.RUN, BOUNDS, counted.runs, counted.run_sum, *pair)


def _queues(
    page: MetricsPage,
    depths: Sequence[Depth],
    queues: Sequence[QueueRow] | None,
    workers: Sequence[WorkerRow] | None,
) -> None:
    longest = sorted(depths, key=lambda depth: (-_age(depth), -depth.due.value, depth.queue))
    page.put(_metrics.SERIES_DROPPED, max(len(depths) - MOST_QUEUES, 0), "queues")
    rows = {row.name: row for row in queues or ()}
    taking = _taking(workers or ())
    for depth in longest[:MOST_QUEUES]:
        for state in _STATES:
            page.put(_metrics.JOBS, getattr(depth, state).value, depth.queue, state)
        page.put(_metrics.DUE_AGE, _age(depth), depth.queue)
        if workers is not None:
            count = taking[depth.queue] + taking[EVERY_QUEUE]
            page.put(_metrics.QUEUE_WORKERS, count, depth.queue)
        if queues is not None:
            page.put(_metrics.QUEUE_PAUSED, _is_paused(rows, depth.queue), depth.queue)


def _taking(workers: Sequence[WorkerRow]) -> Counter[str]:
    """Count each queue's live workers."""
    there = (w for w in live(workers) if w.state == "active" and not w.drain_requested)
    return Counter(queue for worker in there for queue in set(worker.queues))


def _age(depth: Depth) -> float:
    return 0.0 if depth.oldest_due_age is None else depth.oldest_due_age.total_seconds()


def _is_paused(rows: Mapping[str, QueueRow], queue: str) -> bool:
    now = datetime.now(UTC)
    for row in (rows.get(queue), rows.get(EVERY_QUEUE)):
        if row is not None and row.paused_at is not None:
            return row.paused_until is None or row.paused_until > now
    return False


def _workers(page: MetricsPage, workers: Sequence[WorkerRow]) -> None:
    there = live(workers)
    for state in ("active", "draining"):
        page.put(_metrics.WORKERS, sum(worker.state == state for worker in there), state)
    known = sum(worker.state != "offline" for worker in workers)
    page.put(_metrics.WORKERS, known - len(there), "stale")
    page.put(_metrics.SLOTS, sum(worker.slots for worker in there))
    page.put(_metrics.SLOTS_BUSY, sum(worker.running for worker in there))


def _lateness(page: MetricsPage, late: LateWork) -> None:
    page.put(_metrics.LEASE_OVERDUE, late.lease.total_seconds())
    page.put(_metrics.SCHEDULES_DUE, late.schedules.value)
    page.put(_metrics.SCHEDULE_LATE, late.schedule.total_seconds())
    counts = {(str(tick.outcome), str(tick.reason or "")): tick.count for tick in late.ticks}
    # Alerts use these. Prometheus sees an increase only if there was a zero first.
    for labels in (("fired", ""), ("fired", "late"), ("skipped", "missed")):
        counts.setdefault(labels, 0)
    for labels, count in counts.items():
        page.put(_metrics.TICKS, count, *labels)
    page.put(_metrics.OPERATIONS, late.operations.value)
    page.put(_metrics.ITEMS_LEFT, late.items_left)
    page.put(_metrics.OPERATION_LATE, late.operation.total_seconds())
