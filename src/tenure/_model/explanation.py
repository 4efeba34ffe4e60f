"""Where a job stands: why it is not running, or that it is, and what that is told from."""

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
    """Where a job stands, for programs; the first that holds, in this order."""

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
    """Where a job stands, and a sentence that says so. `until` is when this ends by itself, `by`
    and `reason` whose doing it is, `count` how many jobs are meant. `now` is the database's clock;
    of a running job `renewed_at` is when its lease began, or was last renewed, of `renewals`."""

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
    """What is around a live job: its lease, who is before it, what runs under limits, who locks its
    row."""

    now: datetime
    ahead: Count
    running: int
    running_in_all: int
    locked: StuckLease
    renewed_at: datetime | None = None
    renewals: int = 0


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job and what decides where it stands; `around` is None once it has ended."""

    job: JobRow
    around: QueueContext | None = None
    queue: QueueRow | None = None
    every_queue: QueueRow | None = None
    workers: Sequence[WorkerRow] = ()
    held_by: AuditRow | None = None
