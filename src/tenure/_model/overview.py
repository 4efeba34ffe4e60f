"""The overview: counts, alerts, and facts about the database.

What an installation stands on: the server and how it keeps what is acknowledged, who keeps dead
rows from being removed, how much history there is.
"""

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
    """The attempts that ended within an hour, and how many of them failed, timed out or were
    lost."""

    ended: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        """The share that failed, from 0 to 1."""
        return self.failed / self.ended if self.ended else 0.0


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """One queue: how much there is in it, what operators have set for it, how many live workers
    take its jobs, and what ended in the last hour and in the one before."""

    depth: Depth
    set: QueueRow | None = None
    paused: bool = False
    workers: int = 0
    last_hour: HourlyFailures = HourlyFailures()
    hour_before: HourlyFailures = HourlyFailures()

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.depth.queue


@dataclass(frozen=True, slots=True)
class Completion:
    """A job that was completed lately, by its last attempt."""

    job_id: JobId
    queue: str
    task: str
    attempt: int
    claimed_by: WorkerId
    started_at: datetime
    ended_at: datetime

    @property
    def ran(self) -> timedelta:
        """How long that attempt ran."""
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class DayCounts:
    """What is counted for a glance alone; `today` began at midnight UTC."""

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
    """Who keeps dead rows from being removed: `name` is a pid, a prepared transaction's or a
    slot's name. `lag` is in transactions; `age` is known where our role may see it."""

    kind: HorizonHolderKind
    name: str
    application: str | None
    state: str | None
    lag: int
    age: timedelta | None


@dataclass(frozen=True, slots=True)
class LateSchedule:
    """A schedule that is due, and for how long."""

    name: str
    late: timedelta


class AlertCode(StrEnum):
    """What can need attention, the worst first."""

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
    """What a sentence is about."""

    JOB = "job"
    QUEUE = "queue"
    SCHEDULE = "schedule"
    DEAD_LETTERS = "dead_letters"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Target:
    """What a sentence is about, for a link to it; without a name it is all of the kind."""

    kind: TargetKind
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that needs attention: a sentence, and a command that helps."""

    code: AlertCode
    level: Level
    sentence: str
    command: str
    target: Target


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    """The numbers of an overview. Of those `running`, `expired` have a lease that is over. Jobs
    are `retrying` that wait for another attempt: of a thousand of each queue that are due, and of a
    thousand that are for later. Workers are counted that have not said that they end."""

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
    """An installation at a glance, at the database's time `now`. `words` sums it up, also when all
    is well; `attention` has the worst first, and `more` says how many more there are.
    `workers` are those that have not said that they end, those without a recent beat first."""

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
    """What a commit waits for: the disk here, and the standbys that `standby_names` names. So many
    standbys are connected."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standby_names: str
    standbys: int


@dataclass(frozen=True, slots=True)
class History:
    """A table with a partition for each day, from the first to the last, which is ahead of today;
    `keep` is how long a day is kept."""

    name: str
    days: int
    first: date
    last: date
    bytes: int
    keep: timedelta


@dataclass(frozen=True, slots=True)
class System:
    """What an installation stands on."""

    version: str
    role: str
    durability: Durability
    holders: Sequence[HorizonHolder]
    histories: Sequence[History]
