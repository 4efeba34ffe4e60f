"""What needs attention, and who holds back vacuum.

What needs attention, in sentences: rules over figures, the same for a page and a terminal.

Each rule is one short function. What it says has a command that helps, and names what it is about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from tenure._model.diagnostics import Level
from tenure._model.lease import StuckLease
from tenure._model.overview import (
    Alert,
    AlertCode,
    DayCounts,
    HorizonHolder,
    HorizonHolderKind,
    LateSchedule,
    QueueSummary,
    Target,
    TargetKind,
)
from tenure._model.queue import QueueRow
from tenure._model.schedule import TickReason
from tenure._model.stats import LateWork
from tenure._model.worker import WorkerRow
from tenure._rules.formatting import counted, span
from tenure._rules.liveness import is_paused, live, unknown_to_all
from tenure.config import DEFAULTS

# A dump or a report may take a while; a table of jobs grows by what is not removed.
HELD_FOR = timedelta(minutes=10)
# Where the age cannot be seen, or there is none.
HELD_TRANSACTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class DeadRows:
    """Who keeps them, in words, and what ends it: a statement, or words."""

    who: str
    command: str
    in_sql: bool = True


def matters(holder: HorizonHolder) -> bool:
    """Whether it has gone on for so long that tables grow by it."""
    if holder.age is not None:
        return holder.age >= HELD_FOR
    return holder.lag >= HELD_TRANSACTIONS


def dead_rows(holder: HorizonHolder) -> DeadRows:
    """Who it is and what to do, for the kinds there are."""
    length = f"{holder.lag:,} transactions" if holder.age is None else span(holder.age)
    holds = f"holds them for {length}"
    quoted = holder.name.replace("'", "''")
    match holder.kind:
        case HorizonHolderKind.SESSION:
            state = f", {holder.state}" if holder.state else ""
            return DeadRows(
                f"pid {holder.name} ({holder.application or 'unknown'}{state}) {holds}",
                f"SELECT pg_terminate_backend({holder.name})",
            )
        case HorizonHolderKind.STANDBY:
            return DeadRows(
                f"the standby {holder.application or holder.name} {holds}, by its feedback",
                "end the long query on that standby, or switch off its hot_standby_feedback",
                in_sql=False,
            )
        case HorizonHolderKind.PREPARED:
            return DeadRows(
                f"the prepared transaction {holder.name} {holds}", f"ROLLBACK PREPARED '{quoted}'"
            )
        case HorizonHolderKind.SLOT:
            return DeadRows(
                f"the replication slot {holder.name} ({holder.state}) {holds}",
                f"SELECT pg_drop_replication_slot('{quoted}')",
            )


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
class AlertInputs:
    """What the rules look at. `overdue`, `late_schedules` and `holders` have the worst first, and
    only what is past its time."""

    now: datetime
    pulse: DayCounts
    queues: Sequence[QueueSummary]
    every_queue: QueueRow | None
    workers: Sequence[WorkerRow]
    lateness: LateWork
    late_schedules: Sequence[LateSchedule]
    overdue: Sequence[StuckLease]
    holders: Sequence[HorizonHolder]


Alerts = Iterator[Alert]


def find_alerts(figures: AlertInputs) -> tuple[Sequence[Alert], int]:
    """What needs attention, the worst first, and how many sentences are left out."""
    rules = (
        *(_leases, _served, _unknown, _schedules, _late),
        *(_failing, _paused, _missed, _dead, _horizon),
    )
    each = [list(rule(figures)) for rule in rules]
    shown = [said for of_a_kind in each for said in islice(of_a_kind, _OF_A_KIND)][:MOST]
    return shown, sum(map(len, each)) - len(shown)


def words(figures: AlertInputs, *, found: int) -> str:
    """How all of it is, in one sentence."""
    if found:
        return f"{counted(found, 'thing needs', 'things need')} attention."
    there = counted(len(live(figures.workers)), "worker is live", "workers are live")
    if any(queue.depth.due.value or queue.depth.running.value for queue in figures.queues):
        return f"All is well: {there}, nothing is late, no lease is over."
    return f"All is well: {there}, and nothing is due."


def _leases(figures: AlertInputs) -> Alerts:
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
    yield Alert(AlertCode.LEASE_OVER, Level.PROBLEM, sentence, command, target)


def _served(figures: AlertInputs) -> Alerts:
    waiting = [q for q in _open(figures) if q.depth.due.value and not q.workers]
    for queue in sorted(waiting, key=_oldest, reverse=True):
        due = counted(queue.depth.due, "due job", "due jobs")
        yield Alert(
            AlertCode.NOT_SERVED,
            Level.PROBLEM,
            f"Queue {queue.name} has {due} and no live worker.",
            f"tenure worker module:app -q {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _unknown(figures: AlertInputs) -> Alerts:
    for task in unknown_to_all(figures.workers):
        yield Alert(
            AlertCode.TASK_UNKNOWN,
            Level.PROBLEM,
            f"No live worker knows task {task}; its jobs wait.",
            "tenure doctor",
            Target(TargetKind.SYSTEM),
        )


def _schedules(figures: AlertInputs) -> Alerts:
    for schedule in figures.late_schedules:
        yield Alert(
            AlertCode.SCHEDULE_OVERDUE,
            Level.PROBLEM,
            f"Schedule {schedule.name} is due since {span(schedule.late)}, and nobody fires it.",
            "tenure scheduler module:app",
            Target(TargetKind.SCHEDULE, schedule.name),
        )


def _late(figures: AlertInputs) -> Alerts:
    late = [q for q in _open(figures) if q.workers and _oldest(q) > DUE_WITHIN]
    for queue in sorted(late, key=_oldest, reverse=True):
        yield Alert(
            AlertCode.LATE,
            Level.PROBLEM,
            f"The oldest due job of queue {queue.name} waits since {span(_oldest(queue))}; "
            f"{span(DUE_WITHIN)} would be well.",
            f"tenure queue show {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _failing(figures: AlertInputs) -> Alerts:
    failing = [
        queue
        for queue in figures.queues
        if queue.last_hour.ended >= _ATTEMPTS
        and queue.last_hour.share >= _SHARE
        and queue.last_hour.share >= _JUMP * queue.hour_before.share
    ]
    for queue in sorted(failing, key=lambda queue: queue.last_hour.failed, reverse=True):
        before = f"{queue.hour_before.share:.0%}" if queue.hour_before.ended else "none at all"
        yield Alert(
            AlertCode.FAILING,
            Level.PROBLEM,
            f"Of the attempts of queue {queue.name}, {queue.last_hour.share:.0%} failed in the "
            f"last hour ({queue.last_hour.failed:,} of {queue.last_hour.ended:,}); in the hour "
            f"before it was {before}.",
            "tenure failed groups",
            Target(TargetKind.QUEUE, queue.name),
        )


def _paused(figures: AlertInputs) -> Alerts:
    every = figures.every_queue
    due = sum(queue.depth.due.value for queue in figures.queues)
    if every is not None and is_paused(every, figures.now):
        if due:
            yield Alert(
                AlertCode.ALL_PAUSED,
                Level.WARNING,
                f"All queues are paused{_by(every)}, and {counted(due, 'job', 'jobs')} wait.",
                "tenure queue resume '*'",
                Target(TargetKind.QUEUE, every.name),
            )
        return
    paused = [(q, q.set) for q in figures.queues if q.paused and q.depth.due.value]
    for queue, row in sorted(paused, key=lambda each: _oldest(each[0]), reverse=True):
        waiting = counted(queue.depth.due, "job waits", "jobs wait")
        yield Alert(
            AlertCode.QUEUE_PAUSED,
            Level.WARNING,
            f"Queue {queue.name} is paused{_by(row)}, and {waiting} in it.",
            f"tenure queue resume {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _missed(figures: AlertInputs) -> Alerts:
    missed = sum(t.count for t in figures.lateness.ticks if t.reason is TickReason.MISSED)
    if missed:
        was = counted(missed, "tick of a schedule was", "ticks of schedules were")
        yield Alert(
            AlertCode.TICKS_MISSED,
            Level.WARNING,
            f"{was} missed in the last hour, and made no job.",
            "tenure schedule list",
            Target(TargetKind.SCHEDULE),
        )


def _dead(figures: AlertInputs) -> Alerts:
    count = figures.pulse.failed_hour
    if count.value:
        yield Alert(
            AlertCode.DEAD_LETTERS,
            Level.WARNING,
            f"The dead letters grew by {count} in the last hour.",
            "tenure failed groups",
            Target(TargetKind.DEAD_LETTERS),
        )


def _horizon(figures: AlertInputs) -> Alerts:
    for holder in figures.holders[:1]:
        found = dead_rows(holder)
        yield Alert(
            AlertCode.HORIZON,
            Level.WARNING,
            f"Dead rows cannot be removed: {found.who}.",
            found.command,
            Target(TargetKind.SYSTEM),
        )


def _open(figures: AlertInputs) -> list[QueueSummary]:
    if is_paused(figures.every_queue, figures.now):
        return []
    return [queue for queue in figures.queues if not queue.paused]


def _oldest(queue: QueueSummary) -> timedelta:
    return queue.depth.oldest_due_age or timedelta(0)


def _by(row: QueueRow | None) -> str:
    if row is None:
        return ""
    by = f" by {row.paused_by}" if row.paused_by else ""
    return f"{by} ({row.paused_reason})" if row.paused_reason else by
