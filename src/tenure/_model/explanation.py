"""Explanations: why a job is not running, and the facts behind them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenure._model.audit import AuditRow
from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.lease import StuckLease
from tenure._model.queue import QueueRow
from tenure._model.stats import Count
from tenure._model.worker import WorkerRow


class ExplanationCode(StrEnum):
    """Explanation codes, in order of precedence: the first one that applies is used."""

    UNKNOWN = "unknown"
    ENDED = "ended"
    RUNNING = "running"
    LEASE_OVER = "lease_over"
    HELD = "held"
    NOT_DUE = "not_due"
    ALL_PAUSED = "all_paused"
    QUEUE_PAUSED = "queue_paused"
    LIMIT_REACHED = "limit_reached"
    NOT_SERVED = "not_served"
    TASK_UNKNOWN = "task_unknown"
    LOCKED = "locked"
    BEHIND = "behind"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job is or isn't running, as a code and a sentence.

    `until` is when the situation will change on its own, `count` is a number of jobs, and `now` is
    the database's time. `renewed_at` is when a running job's lease began or was last renewed.
    """

    job_id: JobId
    code: ExplanationCode
    sentence: str
    until: datetime | None = None
    by: str | None = None
    reason: str | None = None
    count: Count | None = None
    now: datetime | None = None
    renewed_at: datetime | None = None
    renewals: int | None = None


@dataclass(frozen=True, slots=True)
class QueueContext:
    """A live job's context: its lease, its row lock, the jobs ahead of it, and the running jobs."""

    now: datetime
    ahead: Count
    running: int
    running_in_all: int
    locked: StuckLease
    renewed_at: datetime | None = None
    renewals: int = 0


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job and the facts that explain its state. `around` is None once the job has ended."""

    job: JobRow
    around: QueueContext | None = None
    queue: QueueRow | None = None
    every_queue: QueueRow | None = None
    workers: Sequence[WorkerRow] = ()
    held_by: AuditRow | None = None
