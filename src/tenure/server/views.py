"""What is shown of jobs, and to whom: the one place where payloads leave the server.

Without `payload:read` for a job's queue its arguments, results, reports, logs and error texts are
left out. With it, fields that are declared as secret are still not shown.
"""

from tenure.admin import AttemptRow, JobRow, Redactor, Scope
from tenure.server.access import Caller
from tenure.server.shapes.jobs import AttemptOut, JobOut

_JOB: tuple[str, ...] = (
    *("state", "queue", "task", "priority", "attempt", "max_attempts", "losses", "run_at"),
    *("created_at", "held", "cancel_requested", "claimed_at", "lease_expires_at", "ended_at"),
    *("done_reason", "items"),
)
_PAYLOAD = ("args", "result", "cursor", "progress", "key")
_ATTEMPT: tuple[str, ...] = (
    *("attempt", "late", "due_at", "started_at", "ended_at", "renewals", "repeats"),
    *("error_type", "error_signature"),
)
_WORDS = ("error_message", "error_trace", "log", "refused")


def job(row: JobRow, caller: Caller, redactor: Redactor) -> JobOut:
    """A job as this caller may see it."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    names = _JOB
    if shown:
        row, names = redactor.job(row), (*_JOB, *_PAYLOAD)
    return JobOut(
        id=str(row.id),
        fence=str(row.token),
        payload=shown,
        tags=list((row.meta or {}).get("tags") or []),
        **{name: getattr(row, name) for name in names},
    )


def attempt(row: AttemptRow, of: JobRow, caller: Caller, redactor: Redactor) -> AttemptOut:
    """An attempt as this caller may see it."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    names = _ATTEMPT
    if shown:
        row, names = redactor.attempt(row, of=of), (*_ATTEMPT, *_WORDS)
    return AttemptOut(
        fence=str(row.token),
        outcome=str(row.outcome),
        payload=shown,
        **{name: getattr(row, name) for name in names},
    )
