"""An attempt at a job, and how it ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenure._model.ids import JobId, Json, Token, WorkerId


class AttemptOutcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SNOOZED = "snoozed"
    RELEASED = "released"
    CANCELLED = "cancelled"
    LOST = "lost"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An ended attempt, identified by job and token.

    `refused_result` is a result that arrived too late.
    """

    job_id: JobId
    token: Token
    claimed_by: WorkerId
    attempt: int
    outcome: AttemptOutcome
    late: bool
    due_at: datetime
    started_at: datetime
    ended_at: datetime
    renewals: int
    settle_repeats: int
    queue: str
    task: str
    error_type: str | None
    error_message: str | None
    error_trace: str | None
    error_signature: str | None
    log: str | None
    refused_result: Json
