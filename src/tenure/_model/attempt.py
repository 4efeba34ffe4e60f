"""An attempt: one ended running period, as its row keeps it."""

from dataclasses import dataclass
from datetime import datetime

from tenure._model.ending import Ending
from tenure._model.ids import JobId, Json, Token, WorkerId


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One ended running period, named by (job, token).

    `refused` is the evidence of a result that came too late.
    """

    job_id: JobId
    token: Token
    claimed_by: WorkerId
    attempt: int
    outcome: Ending
    late: bool
    due_at: datetime
    started_at: datetime
    ended_at: datetime
    renewals: int
    repeats: int
    queue: str
    task: str
    error_type: str | None
    error_message: str | None
    error_trace: str | None
    error_signature: str | None
    log: str | None
    refused: Json
