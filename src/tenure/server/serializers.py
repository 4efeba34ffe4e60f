"""What is shown of jobs, schedules and operations, and to whom: where payloads leave the server.

Without `payload:read` for a job's queue its arguments, results, reports, logs and error texts are
left out. With it, fields that are declared as secret are still not shown.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

from tenure.admin import (
    Filter,
    Redactor,
    State,
    describe_timing,
    selector_of,
    selector_text,
)
from tenure.server import dependencies
from tenure.server.auth import Caller
from tenure.server.schemas.jobs import AttemptOut, JobOut
from tenure.server.schemas.operations import OperationOut
from tenure.server.schemas.schedules import ScheduleOut
from tenure.types import AttemptRow, JobRow, OperationRow, ScheduleRow, Scope

_PAYLOAD = ("args", "result", "cursor", "progress", "key")
# The signature is what an error says, without its numbers and quotations: words all the same.
_WORDS = ("error_signature", "error_message", "error_trace", "log", "refused_result")
_UNTOLD = "…"


def job(row: JobRow, caller: Caller, redactor: Redactor, last: AttemptRow | None = None) -> JobOut:
    """A job as this caller may see it; `last` is its last attempt, if that is told."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    meta = row.meta or {}
    ended = None if last is None else attempt(last, row, caller, redactor)
    return JobOut.of(
        redactor.job(row) if shown else row,
        fence=row.token,
        payload=shown,
        tags=meta.get("tags") or [],
        worker=row.claimed_by,
        traceparent=dependencies.read_trace(meta.get("fields") or {}).get("traceparent"),
        last_outcome=None if ended is None else ended.outcome,
        error_type=None if ended is None else ended.error_type,
        error_message=None if ended is None else ended.error_message,
        **{} if shown else dict.fromkeys(_PAYLOAD),
    )


def failing(rows: Sequence[JobRow]) -> list[int]:
    """The jobs that have been tried and have not succeeded: whose last error is told."""
    told = (State.QUEUED, State.RUNNING, State.FAILED)
    return [row.id for row in rows if row.state in told and (row.attempt or row.deaths)]


def attempt(row: AttemptRow, of: JobRow, caller: Caller, redactor: Redactor) -> AttemptOut:
    """An attempt as this caller may see it."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    return AttemptOut.of(
        redactor.attempt(row, of=of) if shown else row,
        fence=row.token,
        payload=shown,
        worker=row.claimed_by,
        **{} if shown else dict.fromkeys(_WORDS),
    )


def schedule(row: ScheduleRow, caller: Caller, redactor: Redactor) -> ScheduleOut:
    """A schedule as this caller may see it."""
    shown = caller.may(Scope.PAYLOAD_READ, row.job.queue)
    timing, job, meta = row.timing, row.job, row.job.meta
    return ScheduleOut.of(
        row,
        words=describe_timing(timing),
        timezone=timing.zone,
        **{name: getattr(timing, name) for name in ("cron", "every", "at")},
        **{name: getattr(job, name) for name in ("task", "queue", "priority", "max_attempts")},
        **{name: meta.get(name) for name in ("timeout", "expires_in")},
        tags=meta.get("tags") or [],
        **{each.name: getattr(row.in_force, each.name) for each in fields(row.in_force)},
        set_here=[
            each.name
            for each in fields(row.set_policy)
            if getattr(row.set_policy, each.name) is not None
        ],
        payload=shown,
        args=redactor.schedule(row).job.args if shown else None,
    )


def operation(row: OperationRow) -> OperationOut:
    """An operation."""
    of = row.filter
    return OperationOut.of(row, queue=of.queue, schedule=of.schedule, filter=_meant(of))


def _meant(said: Filter) -> str | None:
    """What an operation is for, without what only those may see who may read payloads."""
    if said.ids is not None or said.schedule is not None:
        return None
    meant = selector_of(said)
    asks_for_error = bool(meant.error) or said.signature is not None
    return selector_text(replace(meant, error=(_UNTOLD,) if asks_for_error else ()))
