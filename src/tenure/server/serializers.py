"""Serialize jobs, schedules and operations.

Payloads leave the server only through this module. Without `payload:read` for a job's queue, its
arguments, results, progress, logs and error texts are omitted. Secret fields are always redacted.
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

# The signature is derived from an error message, so it counts as payload.
_TEXTS = ("error_signature", "error_message", "error_trace", "log", "refused_result")
_HIDDEN = "…"


def job(
    row: JobRow,
    caller: Caller,
    redactor: Redactor,
    last: AttemptRow | None = None,
    of: JobRow | None = None,
) -> JobOut:
    """Serialize a job for a caller.

    `last` is the last attempt, if it is shown. `of` is the job with its arguments, whose secrets
    the attempt may quote.
    """
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    meta = row.meta or {}
    ended = None if last is None else attempt(last, of or row, caller, redactor)
    return JobOut.of(
        redactor.job(row if shown else _without_payload(row)),
        fence=row.token,
        payload=shown,
        tags=redactor.value(meta.get("tags") or []),
        rerun_of=meta.get("rerun_of"),
        worker=row.claimed_by,
        traceparent=dependencies.read_trace(meta.get("fields") or {}).get("traceparent"),
        last_outcome=None if ended is None else ended.outcome,
        error_type=None if ended is None else ended.error_type,
        error_message=None if ended is None else ended.error_message,
    )


def _without_payload(row: JobRow) -> JobRow:
    return replace(row, args=None, result=None, cursor=None, progress=None, key=None)


def failing(rows: Sequence[JobRow]) -> list[int]:
    """Return the jobs whose last error is shown: attempted ones that haven't succeeded."""
    states = (State.QUEUED, State.RUNNING, State.FAILED)
    return [row.id for row in rows if row.state in states and (row.attempt or row.deaths)]


def attempt(row: AttemptRow, of: JobRow, caller: Caller, redactor: Redactor) -> AttemptOut:
    """Serialize an attempt for a caller."""
    shown = caller.may(Scope.PAYLOAD_READ, row.queue)
    return AttemptOut.of(
        redactor.attempt(row, of=of) if shown else row,
        fence=row.token,
        payload=shown,
        worker=row.claimed_by,
        **{} if shown else dict.fromkeys(_TEXTS),
    )


def schedule(row: ScheduleRow, caller: Caller, redactor: Redactor) -> ScheduleOut:
    """Serialize a schedule for a caller."""
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
    """Serialize an operation."""
    of = row.filter
    return OperationOut.of(row, queue=of.queue, schedule=of.schedule, filter=_selector(of))


def _selector(wanted: Filter) -> str | None:
    """Return an operation's selector, without values that need `payload:read`."""
    if wanted.ids is not None or wanted.schedule is not None:
        return None
    selector = selector_of(wanted)
    asks_for_error = bool(selector.error) or wanted.signature is not None
    return selector_text(replace(selector, error=(_HIDDEN,) if asks_for_error else ()))
