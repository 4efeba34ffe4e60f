"""The overview: counts, alerts, and facts about the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from tenure._model.diagnostics import Level
from tenure._model.ids import JobId, WorkerId
from tenure._model.queue import QueueRow
from tenure._model.stats import Count, Depth
from tenure._model.worker import WorkerRow


@dataclass(frozen=True, slots=True)
class HourlyFailures:
    """Attempts that ended within an hour, and how many failed, timed out or were lost."""

    ended: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        return self.failed / self.ended if self.ended else 0.0


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """A queue: its depth, settings, live workers, and failures in the last two hours."""

    depth: Depth
    set: QueueRow | None = None
    paused: bool = False
    workers: int = 0
    last_hour: HourlyFailures = HourlyFailures()
    hour_before: HourlyFailures = HourlyFailures()

    @property
    def name(self) -> str:
        return self.depth.queue


@dataclass(frozen=True, slots=True)
class Completion:
    """A recently completed job, by its last attempt."""

    job_id: JobId
    queue: str
    task: str
    attempt: int
    claimed_by: WorkerId
    started_at: datetime
    ended_at: datetime

    @property
    def ran(self) -> timedelta:
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class DayCounts:
    """Counts for the overview only. `today` started at midnight UTC."""

    now: datetime
    expired: Count
    completed_today: Count
    failed_day: Count
    failed_hour: Count


class HorizonHolderKind(StrEnum):
    """What can keep dead rows from being removed."""

    SESSION = "session"
    STANDBY = "standby"
    PREPARED = "prepared"
    SLOT = "slot"


@dataclass(frozen=True, slots=True)
class HorizonHolder:
    """What keeps dead rows from being removed. `lag` is in transactions."""

    kind: HorizonHolderKind
    name: str
    application: str | None
    state: str | None
    lag: int
    age: timedelta | None


@dataclass(frozen=True, slots=True)
class LateSchedule:
    name: str
    late: timedelta


class AlertCode(StrEnum):
    """Alert codes, worst first."""

    LEASE_OVER = "lease_over"
    NOT_SERVED = "not_served"
    TASK_UNKNOWN = "task_unknown"
    SCHEDULE_OVERDUE = "schedule_overdue"
    LATE = "late"
    FAILING = "failing"
    ALL_PAUSED = "all_paused"
    QUEUE_PAUSED = "queue_paused"
    TICKS_MISSED = "ticks_missed"
    DEAD_LETTERS = "dead_letters"
    HORIZON = "horizon"


class TargetKind(StrEnum):
    JOB = "job"
    QUEUE = "queue"
    SCHEDULE = "schedule"
    DEAD_LETTERS = "dead_letters"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Target:
    """An alert's subject, for a link. Without a name, it means all of that kind."""

    kind: TargetKind
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that needs attention, and a command that helps fix it."""

    code: AlertCode
    level: Level
    sentence: str
    command: str
    target: Target


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    """Overview counts. `retrying` examines 200 due and 200 later jobs in each queue."""

    due: Count
    scheduled: Count
    running: Count
    expired: Count
    retrying: Count
    held: Count
    failed: Count
    oldest_due: timedelta | None
    completed_today: Count
    failed_day: Count
    workers_active: int
    workers_total: int


@dataclass(frozen=True, slots=True)
class Overview:
    """An installation at a glance.

    `attention` lists the worst alerts first, and `more` counts the rest.
    """

    now: datetime
    words: str
    numbers: OverviewCounts
    attention: Sequence[Alert]
    more: int
    queues: Sequence[QueueSummary]
    workers: Sequence[WorkerRow]
    completions: Sequence[Completion]


@dataclass(frozen=True, slots=True)
class Durability:
    """What a commit waits for: the local disk, and the standbys in `standby_names`."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standby_names: str
    standbys: int


@dataclass(frozen=True, slots=True)
class History:
    """A table with daily partitions from `first` to `last`, kept for `keep`."""

    name: str
    days: int
    first: date
    last: date
    bytes: int
    keep: timedelta


@dataclass(frozen=True, slots=True)
class System:
    """The server, its durability, what holds back vacuum, and the history's size."""

    version: str
    role: str
    durability: Durability
    holders: Sequence[HorizonHolder]
    histories: Sequence[History]
