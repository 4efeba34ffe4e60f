"""Decide what needs attention, and describe it in sentences.

The dashboard and `tenure top` show the same sentences. Each rule is a short function that yields
alerts. An alert has a sentence, a target, and a command that helps to fix it.
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
from tenure._rules.liveness import is_paused, live
from tenure.config import DEFAULTS

# A dump or a report may take a while. Until it ends, dead rows can't be removed and the job table
# grows.
HELD_FOR = timedelta(minutes=10)
# For holders without a visible age.
HELD_TRANSACTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class DeadRows:
    """What keeps dead rows from being removed, and the fix: a SQL statement or instructions."""

    who: str
    command: str
    in_sql: bool = True


def matters(holder: HorizonHolder) -> bool:
    """Whether the holder has lasted long enough to make tables grow."""
    if holder.age is not None:
        return holder.age >= HELD_FOR
    return holder.lag >= HELD_TRANSACTIONS


def dead_rows(holder: HorizonHolder) -> DeadRows:
    """Describe the holder and what to do about it."""
    length = f"{holder.lag:,} transactions" if holder.age is None else span(holder.age)
    holds = f"has held them for {length}"
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
                f"the standby {holder.application or holder.name} {holds} (hot_standby_feedback)",
                "end the long query on that standby, or turn off its hot_standby_feedback",
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


# How long a due job may wait before its queue is considered behind.
DUE_WITHIN = timedelta(minutes=5)
# Workers take over expired leases every few seconds, and fire schedules within a second.
RESCUED_WITHIN = DEFAULTS.lease
FIRED_WITHIN = timedelta(minutes=1)
# A failure rate has jumped if at least this share of at least this many attempts failed, and the
# share is twice that of the hour before.
_ATTEMPTS = 20
_SHARE = 0.1
_JUMP = 2

MOST = 8
_OF_A_KIND = 3


@dataclass(frozen=True, slots=True)
class AlertInputs:
    """The inputs to the rules.

    `overdue`, `late_schedules` and `holders` contain only entries past their threshold, worst
    first. `unknown_tasks` lists tasks that have queued jobs but that no live worker knows.
    """

    now: datetime
    pulse: DayCounts
    queues: Sequence[QueueSummary]
    every_queue: QueueRow | None
    workers: Sequence[WorkerRow]
    lateness: LateWork
    late_schedules: Sequence[LateSchedule]
    overdue: Sequence[StuckLease]
    holders: Sequence[HorizonHolder]
    unknown_tasks: Sequence[str] = ()


Alerts = Iterator[Alert]


def find_alerts(figures: AlertInputs) -> tuple[Sequence[Alert], int]:
    """Return what needs attention, worst first, and how many alerts were omitted."""
    rules = (
        *(_leases, _served, _unknown, _schedules, _late),
        *(_failing, _paused, _missed, _dead, _horizon),
    )
    each = [list(rule(figures)) for rule in rules]
    shown = [alert for of_a_kind in each for alert in islice(of_a_kind, _OF_A_KIND)][:MOST]
    return shown, sum(map(len, each)) - len(shown)


def words(figures: AlertInputs, *, found: int) -> str:
    """Summarize the installation in one sentence."""
    if found:
        return f"{counted(found, 'thing needs', 'things need')} attention."
    count = len(live(figures.workers))
    if not count:
        return "No workers are live. Start one: tenure worker module:app"
    there = counted(count, "worker is live", "workers are live")
    if any(queue.depth.due.value or queue.depth.running.value for queue in figures.queues):
        return f"All is well: {there}, no queue is behind, no lease is overdue."
    return f"All is well: {there}, and no jobs are due."


def _leases(figures: AlertInputs) -> Alerts:
    if not figures.overdue:
        return
    first = figures.overdue[0]
    over = f"The lease of job {first.job_id} expired {span(figures.lateness.lease)} ago"
    others = figures.pulse.expired.value - 1
    more = f" ({others:,} more)" if others else ""
    target = Target(TargetKind.JOB, str(first.job_id))
    if first.pid is not None:
        by = f"pid {first.pid} ({first.application or 'unknown'})"
        sentence = f"{over}, and no worker can take it over: {by} has its row locked{more}."
        command = f"SELECT pg_terminate_backend({first.pid})"
    else:
        sentence = f"{over}, and no worker has taken the job over{more}."
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
    for task in figures.unknown_tasks:
        yield Alert(
            AlertCode.TASK_UNKNOWN,
            Level.PROBLEM,
            f"Jobs of task {task} wait: no live worker knows it.",
            "tenure doctor",
            Target(TargetKind.SYSTEM),
        )


def _schedules(figures: AlertInputs) -> Alerts:
    for schedule in figures.late_schedules:
        yield Alert(
            AlertCode.SCHEDULE_OVERDUE,
            Level.PROBLEM,
            f"Schedule {schedule.name} is {span(schedule.late)} overdue: "
            "no worker is firing schedules.",
            "tenure scheduler module:app",
            Target(TargetKind.SCHEDULE, schedule.name),
        )


def _late(figures: AlertInputs) -> Alerts:
    late = [q for q in _open(figures) if q.workers and _oldest(q) > DUE_WITHIN]
    for queue in sorted(late, key=_oldest, reverse=True):
        yield Alert(
            AlertCode.LATE,
            Level.PROBLEM,
            f"Queue {queue.name} is behind: its oldest job has waited {span(_oldest(queue))} "
            f"(threshold: {span(DUE_WITHIN)}).",
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
        before = f"{queue.hour_before.share:.0%}" if queue.hour_before.ended else "no attempts"
        yield Alert(
            AlertCode.FAILING,
            Level.PROBLEM,
            f"Queue {queue.name} is failing: {queue.last_hour.share:.0%} of attempts in the last "
            f"hour ({queue.last_hour.failed:,} of {queue.last_hour.ended:,}; the hour before: "
            f"{before}).",
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
                f"All queues are paused{_by(every)}; {counted(due, 'job waits', 'jobs wait')}.",
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
            f"Queue {queue.name} is paused{_by(row)}; {waiting}.",
            f"tenure queue resume {queue.name}",
            Target(TargetKind.QUEUE, queue.name),
        )


def _missed(figures: AlertInputs) -> Alerts:
    missed = sum(t.count for t in figures.lateness.ticks if t.reason is TickReason.MISSED)
    if missed:
        runs = counted(missed, "scheduled run", "scheduled runs")
        yield Alert(
            AlertCode.TICKS_MISSED,
            Level.WARNING,
            f"Missed {runs} in the last hour: no worker fired them in time.",
            "tenure schedule list",
            Target(TargetKind.SCHEDULE),
        )


def _dead(figures: AlertInputs) -> Alerts:
    count = figures.pulse.failed_hour
    if count.value:
        yield Alert(
            AlertCode.DEAD_LETTERS,
            Level.WARNING,
            f"{counted(count, 'job', 'jobs')} failed for good in the last hour.",
            "tenure failed groups",
            Target(TargetKind.DEAD_LETTERS),
        )


def _horizon(figures: AlertInputs) -> Alerts:
    for holder in figures.holders[:1]:
        described = dead_rows(holder)
        yield Alert(
            AlertCode.HORIZON,
            Level.WARNING,
            f"Vacuum cannot remove dead rows: {described.who}.",
            described.command,
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
