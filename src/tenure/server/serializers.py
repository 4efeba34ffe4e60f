"""What is shown of jobs, schedules and operations, and to whom: where payloads leave the server.

Without `payload:read` for a job's queue its arguments, results, reports, logs and error texts are
left out. With it, fields that are declared as secret are still not shown.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from tenure.admin import (
    Filter,
    JobSearch,
    Redactor,
    Run,
    State,
    describe_timing,
    selector_of,
    selector_text,
)
from tenure.server import dependencies
from tenure.server.auth import Caller
from tenure.server.schemas.jobs import AttemptOut, JobOut, SearchOut
from tenure.server.schemas.operations import OperationOut
from tenure.server.schemas.schedules import RunOut, ScheduleOut, ShiftOut, TickOut
from tenure.types import AttemptRow, ClockChange, JobRow, OperationRow, ScheduleRow, Scope, TickRow

_JOB: tuple[str, ...] = (
    *("state", "queue", "task", "priority", "attempt", "max_attempts", "losses", "run_at"),
    *("created_at", "held", "cancel_requested", "claimed_at", "lease_expires_at", "ended_at"),
    *("done_reason", "items", "worker_losses", "deaths"),
)
_PAYLOAD = ("args", "result", "cursor", "progress", "key")
_ATTEMPT: tuple[str, ...] = (
    *("attempt", "late", "due_at", "started_at", "ended_at", "renewals", "repeats"),
    "error_type",
)
# The signature is what an error says, without its numbers and quotations: words all the same.
_WORDS = ("error_signature", "error_message", "error_trace", "log", "refused")
_SCHEDULE: tuple[str, ...] = (
    *("name", "version", "state", "program", "next_at", "last_at", "paused_at", "paused_until"),
    *("paused_by", "paused_reason", "retired_at", "created_at", "changed_at"),
)
_UNTOLD = "…"
_POLICIES = ("missed", "missed_within", "missed_most", "jitter")


def job(row: JobRow, caller: Caller, redactor: Redactor, last: AttemptRow | None = None) -> JobOut:
    """A job as this caller may see it; `last` is its last attempt, if that is told."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    names = _JOB
    ended = None if last is None else attempt(last, row, caller, redactor)
    if shown:
        row, names = redactor.job(row), (*_JOB, *_PAYLOAD)
    return JobOut(
        id=str(row.id),
        fence=str(row.token),
        payload=shown,
        tags=list((row.meta or {}).get("tags") or []),
        worker=None if row.claimed_by is None else str(row.claimed_by),
        traceparent=dependencies.read_trace((row.meta or {}).get("fields") or {}).get(
            "traceparent"
        ),
        last_outcome=None if ended is None else ended.outcome,
        error_type=None if ended is None else ended.error_type,
        error_message=None if ended is None else ended.error_message,
        **{name: getattr(row, name) for name in names},
    )


def failing(rows: Sequence[JobRow]) -> list[int]:
    """The jobs that have been tried and have not succeeded: whose last error is told."""
    told = (State.QUEUED, State.RUNNING, State.FAILED)
    return [row.id for row in rows if row.state in told and (row.attempt or row.deaths)]


def search(found: JobSearch) -> SearchOut:
    """How far was searched."""
    return SearchOut(
        searched=found.searched,
        bounded=found.bounded,
        window=found.window,
        took=found.took.total_seconds(),
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
        worker=str(row.claimed_by),
        **{name: getattr(row, name) for name in names},
    )


def schedule(row: ScheduleRow, caller: Caller, redactor: Redactor) -> ScheduleOut:
    """A schedule as this caller may see it."""
    shown = caller.may(Scope.PAYLOAD_READ, row.job.queue)
    job, force, meta = row.job, row.in_force, row.job.meta
    return ScheduleOut(
        words=describe_timing(row.timing),
        cron=row.timing.cron,
        every=_seconds(row.timing.every),
        at=row.timing.at,
        timezone=row.timing.zone,
        task=job.task,
        queue=job.queue,
        priority=job.priority,
        max_attempts=job.max_attempts,
        timeout=meta.get("timeout"),
        expires_in=meta.get("expires_in"),
        tags=list(meta.get("tags") or []),
        missed=force.missed,
        missed_within=force.missed_within.total_seconds(),
        missed_most=force.missed_most,
        overlap=force.overlap,
        jitter=force.jitter.total_seconds(),
        set_here=[name for name in _POLICIES if getattr(row.set_policy, name) is not None],
        last_job_id=None if row.last_job_id is None else str(row.last_job_id),
        payload=shown,
        args=redactor.schedule(row).job.args if shown else None,
        **{name: getattr(row, name) for name in _SCHEDULE},
    )


def run(run: Run) -> RunOut:
    """A run that is to come."""
    return RunOut(
        fire_at=run.fire_at,
        local=run.local,
        run_at=run.run_at,
        shift=None if run.shift is None else _shift(run.shift),
        moved=run.moved,
        paused=run.paused,
    )


def _shift(shift: ClockChange) -> ShiftOut:
    return ShiftOut(at=shift.at, shown=shift.shown.isoformat(), becomes=shift.becomes.isoformat())


def tick(row: TickRow) -> TickOut:
    """A past run."""
    return TickOut(
        fire_at=row.fire_at,
        outcome=row.outcome,
        reason=row.reason,
        job_id=None if row.job_id is None else str(row.job_id),
        recorded_at=row.recorded_at,
    )


def _seconds(lasts: timedelta | None) -> float | None:
    return None if lasts is None else lasts.total_seconds()


def operation(row: OperationRow) -> OperationOut:
    """An operation."""
    own = {"id", "queue", "schedule", "outcomes", "filter"}
    names = OperationOut.model_fields.keys() - own
    return OperationOut(
        id=str(row.id),
        queue=row.filter.queue,
        schedule=row.filter.schedule,
        filter=_meant(row.filter),
        outcomes={str(name): count for name, count in row.outcomes.items()},
        **{name: getattr(row, name) for name in names},
    )


def _meant(said: Filter) -> str | None:
    """What an operation is for, without what only those may see who may read payloads."""
    if said.ids is not None or said.schedule is not None:
        return None
    meant = selector_of(said)
    asks_for_error = bool(meant.error) or said.signature is not None
    return selector_text(replace(meant, error=(_UNTOLD,) if asks_for_error else ()))
