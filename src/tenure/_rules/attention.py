"""What needs attention, in sentences: rules over figures, the same for a page and a terminal.

Each rule is one short function. What it says has a command that helps, and names what it is about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from tenure._model.finding import Level
from tenure._model.lease import Overdue
from tenure._model.overview import (
    Attention,
    AttentionCode,
    Holder,
    LateSchedule,
    Pulse,
    QueueFigures,
    Target,
    TargetKind,
)
from tenure._model.queue import QueueRow
from tenure._model.schedule import TickReason
from tenure._model.vitals import Lateness
from tenure._model.worker import WorkerRow
from tenure._rules.holding import dead_rows
from tenure._rules.pausing import is_paused
from tenure._rules.presence import live, unknown_to_all
from tenure._rules.words import counted, span
from tenure.config import DEFAULTS

# How long a due job may wait before that is said.
DUE_WITHIN = timedelta(minutes=5)
# Rescues come every few seconds, schedulers fire within one.
RESCUED_WITHIN = DEFAULTS.lease
FIRED_WITHIN = timedelta(minutes=1)
# A failure rate has jumped if, of so many attempts, this share failed, and twice that before.
_ATTEMPTS = 20
_SHARE = 0.1
_JUMP = 2

MOST = 8
_OF_A_KIND = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """What the rules look at. `overdue`, `late_schedules` and `holders` have the worst first, and
    only what is past its time."""

    now: datetime
    pulse: Pulse
    queues: Sequence[QueueFigures]
    every_queue: QueueRow | None
    workers: Sequence[WorkerRow]
    lateness: Lateness
    late_schedules: Sequence[LateSchedule]
    overdue: Sequence[Overdue]
    holders: Sequence[Holder]


Said = Iterator[Attention]


def attention(figures: Figures) -> tuple[Sequence[Attention], int]:
    """What needs attention, the worst first, and how many sentences are left out."""
    rules = (
        *(_leases, _served, _unknown, _schedules, _late),
        *(_failing, _paused, _missed, _dead, _horizon),
    )
    each = [list(rule(figures)) for rule in rules]
    shown = [said for of_a_kind in each for said in islice(of_a_kind, _OF_A_KIND)][:MOST]
    return shown, sum(map(len, each)) - len(shown)


def words(figures: Figures, *, found: int) -> str:
    """How all of it is, in one sentence."""
    if found:
        return f"{counted(found, 'thing needs', 'things need')} attention."
    there = counted(len(live(figures.workers)), "worker is live", "workers are live")
    if any(queue.depth.due.value or queue.depth.running.value for queue in figures.queues):
        return f"All is well: {there}, nothing is late, no lease is over."
    return f"All is well: {there}, and nothing is due."


def _leases(figures: Figures) -> Said:
    if not figures.overdue:
        return
    first = figures.overdue[0]
    over = f"The lease of job {first.job_id} is over since {span(figures.lateness.lease)}"
    others = figures.pulse.expired.value - 1
    more = f" ({counted(others, 'other lease is', 'other leases are')} over, too)" if others else ""
    target = Target(TargetKind.JOB, str(first.job_id))
    if first.pid is not None:
        by = f"pid {first.pid} ({first.application or 'unknown'})"
        sentence = f"{over} and cannot be rescued: {by} has its row locked{more}."
        command = f"SELECT pg_terminate_backend({first.pid})"
    else:
        sentence = f"{over}, and nobody has rescued it{more}."
        command = "tenure worker module:app"
    yield Attention(AttentionCode.LEASE_OVER, Level.PROBLEM, sentence, command, target)


def _served(figures: Figures) -> Said:
    waiting = [q for q in _open(figures) if q.depth.due.value and not q.workers]
    for queue in sorted(waiting, key=_oldest, reverse=True):
        due = counted(queue.depth.due, "due job", "due jobs")
        yield Attention(
            AttentionCode.NOT_SERVED,
            Level.PROBLEM,
            f"Queue {queue.name} has {due} and no live worker.",
            f"tenure worker module:app -q {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _unknown(figures: Figures) -> Said:
    for task in unknown_to_all(figures.workers):
        yield Attention(
            AttentionCode.TASK_UNKNOWN,
            Level.PROBLEM,
            f"No live worker knows task {task}; its jobs wait.",
            "tenure doctor",
            Target(TargetKind.SYSTEM),
        )


def _schedules(figures: Figures) -> Said:
    for schedule in figures.late_schedules:
        yield Attention(
            AttentionCode.SCHEDULE_OVERDUE,
            Level.PROBLEM,
            f"Schedule {schedule.name} is due since {span(schedule.late)}, and nobody fires it.",
            "tenure scheduler module:app",
            Target(TargetKind.SCHEDULE, schedule.name),
        )


def _late(figures: Figures) -> Said:
    late = [q for q in _open(figures) if q.workers and _oldest(q) > DUE_WITHIN]
    for queue in sorted(late, key=_oldest, reverse=True):
        yield Attention(
            AttentionCode.LATE,
            Level.PROBLEM,
            f"The oldest due job of queue {queue.name} waits since {span(_oldest(queue))}; "
            f"{span(DUE_WITHIN)} would be well.",
            f"tenure queue show {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _failing(figures: Figures) -> Said:
    failing = [
        queue
        for queue in figures.queues
        if queue.last_hour.ended >= _ATTEMPTS
        and queue.last_hour.share >= _SHARE
        and queue.last_hour.share >= _JUMP * queue.hour_before.share
    ]
    for queue in sorted(failing, key=lambda queue: queue.last_hour.failed, reverse=True):
        before = f"{queue.hour_before.share:.0%}" if queue.hour_before.ended else "none at all"
        yield Attention(
            AttentionCode.FAILING,
            Level.PROBLEM,
            f"Of the attempts of queue {queue.name}, {queue.last_hour.share:.0%} failed in the "
            f"last hour ({queue.last_hour.failed:,} of {queue.last_hour.ended:,}); in the hour "
            f"before it was {before}.",
            "tenure failed groups",
            Target(TargetKind.QUEUE, queue.name),
        )


def _paused(figures: Figures) -> Said:
    every = figures.every_queue
    due = sum(queue.depth.due.value for queue in figures.queues)
    if every is not None and is_paused(every, figures.now):
        if due:
            yield Attention(
                AttentionCode.ALL_PAUSED,
                Level.WARNING,
                f"All queues are paused{_by(every)}, and {counted(due, 'job', 'jobs')} wait.",
                "tenure queue resume '*'",
                Target(TargetKind.QUEUE, every.name),
            )
        return
    paused = [(q, q.set) for q in figures.queues if q.paused and q.depth.due.value]
    for queue, row in sorted(paused, key=lambda each: _oldest(each[0]), reverse=True):
        waiting = counted(queue.depth.due, "job waits", "jobs wait")
        yield Attention(
            AttentionCode.QUEUE_PAUSED,
            Level.WARNING,
            f"Queue {queue.name} is paused{_by(row)}, and {waiting} in it.",
            f"tenure queue resume {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _missed(figures: Figures) -> Said:
    missed = sum(t.count for t in figures.lateness.ticks if t.reason is TickReason.MISSED)
    if missed:
        was = counted(missed, "tick of a schedule was", "ticks of schedules were")
        yield Attention(
            AttentionCode.TICKS_MISSED,
            Level.WARNING,
            f"{was} missed in the last hour, and made no job.",
            "tenure schedule list",
            Target(TargetKind.SCHEDULE),
        )


def _dead(figures: Figures) -> Said:
    count = figures.pulse.failed_hour
    if count.value:
        yield Attention(
            AttentionCode.DEAD_LETTERS,
            Level.WARNING,
            f"The dead letters grew by {count} in the last hour.",
            "tenure failed groups",
            Target(TargetKind.DEAD_LETTERS),
        )


def _horizon(figures: Figures) -> Said:
    for holder in figures.holders[:1]:
        found = dead_rows(holder)
        yield Attention(
            AttentionCode.HORIZON,
            Level.WARNING,
            f"Dead rows cannot be removed: {found.who}.",
            found.command,
            Target(TargetKind.SYSTEM),
        )


def _open(figures: Figures) -> list[QueueFigures]:
    if is_paused(figures.every_queue, figures.now):
        return []
    return [queue for queue in figures.queues if not queue.paused]


def _oldest(queue: QueueFigures) -> timedelta:
    return queue.depth.oldest_due_age or timedelta(0)


def _by(row: QueueRow | None) -> str:
    if row is None:
        return ""
    by = f" by {row.paused_by}" if row.paused_by else ""
    return f"{by} ({row.paused_reason})" if row.paused_reason else by
