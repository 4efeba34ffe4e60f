"""A round as a page of metrics."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic

from tenure.admin import BOUNDS, EVERY_QUEUE, Depth, Lateness, QueueRow, WorkerRow, live
from tenure.metrics import Page, table
from tenure.server.metrics.counters import Counters
from tenure.server.metrics.rounds import Round, Rounds

# So many queues have gauges of their own: those whose first job has been due the longest.
MOST_QUEUES = 500
_STATES = ("due", "later", "running", "held", "failed")


def write(page: Page, rounds: Rounds, found: Round) -> None:
    """Everything that is known of the installation. Figures of a database that is away are left
    out; counters stay as they were."""
    page.put(table.DATABASE_UP, found.up)
    page.put(table.ROUND_SECONDS, found.took)
    page.put(table.ROUND_AGE, monotonic() - found.began_at)
    for part, answered in found.answered.items():
        page.put(table.PART_UP, answered, part)
    for whole, count in rounds.done.items():
        page.put(table.ROUNDS, count, "whole" if whole else "short")
    _counters(page, rounds.counters)
    if found.counts_age is not None:
        page.put(table.COUNTS_AGE, found.counts_age.total_seconds())
    if found.depths is not None:
        _queues(page, found.depths, found.queues, found.workers)
    if found.workers is not None:
        _workers(page, found.workers)
    if found.lateness is not None:
        _lateness(page, found.lateness)
    if found.storage is not None:
        for each in found.storage.tables:
            page.put(table.TABLE_BYTES, each.bytes, each.name)
            page.put(table.LIVE_ROWS, each.live_rows, each.name)
            page.put(table.DEAD_ROWS, each.dead_rows, each.name)
        oldest = found.storage.oldest
        page.put(table.HORIZON, found.storage.horizon)
        page.put(table.OLDEST, 0 if oldest is None else oldest.total_seconds())


def _counters(page: Page, counters: Counters) -> None:
    page.put(table.CUT, counters.cut, "tasks")
    for pair, counted in counters:
        for ending, count in counted.outcomes.items():
            page.put(table.ATTEMPTS, count, *pair, str(ending))
        page.spread(table.WAIT, BOUNDS, counted.waits, counted.wait_sum, *pair)
        page.spread(table.RUN, BOUNDS, counted.runs, counted.run_sum, *pair)


def _queues(
    page: Page,
    depths: Sequence[Depth],
    queues: Sequence[QueueRow] | None,
    workers: Sequence[WorkerRow] | None,
) -> None:
    longest = sorted(depths, key=lambda depth: (-_age(depth), -depth.due.value, depth.queue))
    page.put(table.CUT, max(len(depths) - MOST_QUEUES, 0), "queues")
    rows = {row.name: row for row in queues or ()}
    taking = _taking(workers or ())
    for depth in longest[:MOST_QUEUES]:
        for state in _STATES:
            page.put(table.JOBS, getattr(depth, state).value, depth.queue, state)
        page.put(table.DUE_AGE, _age(depth), depth.queue)
        if workers is not None:
            count = taking[depth.queue] + taking[EVERY_QUEUE]
            page.put(table.QUEUE_WORKERS, count, depth.queue)
        if queues is not None:
            page.put(table.QUEUE_PAUSED, _is_paused(rows, depth.queue), depth.queue)


def _taking(workers: Sequence[WorkerRow]) -> Counter[str]:
    """How many live workers take jobs from each queue that one names."""
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


def _workers(page: Page, workers: Sequence[WorkerRow]) -> None:
    there = live(workers)
    for state in ("active", "draining"):
        page.put(table.WORKERS, sum(worker.state == state for worker in there), state)
    known = sum(worker.state != "offline" for worker in workers)
    page.put(table.WORKERS, known - len(there), "stale")
    page.put(table.SLOTS, sum(worker.slots for worker in there))
    page.put(table.SLOTS_BUSY, sum(worker.running for worker in there))


def _lateness(page: Page, late: Lateness) -> None:
    page.put(table.LEASE_OVER, late.lease.total_seconds())
    page.put(table.SCHEDULES_DUE, late.schedules.value)
    page.put(table.SCHEDULE_LATE, late.schedule.total_seconds())
    counts = {(str(tick.outcome), str(tick.reason or "")): tick.count for tick in late.ticks}
    # These are alerted on: a rise from nothing is seen only where there was a zero.
    for labels in (("fired", ""), ("fired", "late"), ("skipped", "missed")):
        counts.setdefault(labels, 0)
    for labels, count in counts.items():
        page.put(table.TICKS, count, *labels)
    page.put(table.OPERATIONS, late.operations.value)
    page.put(table.ITEMS_LEFT, late.items_left)
    page.put(table.OPERATION_LATE, late.operation.total_seconds())
