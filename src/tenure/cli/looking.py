"""`tenure job list`, `show` and `why`: looking at jobs, changing nothing."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.data import print_fields, print_json, print_lines, print_table
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.listing import print_found, state
from tenure.cli.options import AsJson, DatabaseUrl, JobNumber, SchemaName, opened
from tenure.cli.selecting import OfQueue, OfTask, SelectorWords, meant
from tenure.cli.words import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import AttemptRow, AuditRow, JobRow, Membership


class StateName(StrEnum):
    """The states by name, without loading what knows them; a test holds them to be the same."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


def list_jobs(
    words: SelectorWords = None,
    *,
    state: Annotated[
        StateName | None,
        typer.Option("--state", help="In which state; without any selector, those queued."),
    ] = None,
    queue: OfQueue = None,
    task: OfTask = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="PLACE", help="Go on where the last list ended."),
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show the jobs that a selector means, newest first; without one, what is queued."""
    said = StateName.QUEUED if state is None and not words else state
    selector = meant(words, state=said, queue=queue, task=task)
    with opened(database_url, schema) as admin:
        print_found(admin, selector, count=count, after=after, as_json=as_json)
    return Exit.DONE


def show(
    job_id: JobNumber,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one job: where it is, each of its attempts, and what was done to it."""
    with opened(database_url, schema) as admin:
        job = admin.job(job_id)
        shown = admin.redactor()
        attempts = [shown.attempt(each, of=job) for each in admin.attempts(job_id)]
        audit = admin.audit(f"job:{job_id}")
        operations = admin.operations.of(job_id)
    if job is None:
        raise unknown(job_id)
    job = shown.job(job)
    if as_json:
        print_json({"job": job, "attempts": attempts, "audit": audit, "operations": operations})
    else:
        _show(job, attempts, audit)
        _show_operations(operations)
    return Exit.DONE


def why(
    job_id: JobNumber,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Say why a job is not running, or who runs it, or how it ended."""
    from tenure.admin import StandingCode

    with opened(database_url, schema) as admin:
        standing = admin.why(job_id)
    if standing.code is StandingCode.UNKNOWN:
        raise unknown(job_id)
    if as_json:
        print_json(standing)
    else:
        print_lines([safe(standing.sentence)])
    return Exit.DONE


def unknown(job_id: int) -> Failure:
    """The failure for a job that there is not."""
    return Failure(
        f"there is no job {job_id}",
        "it never was, it was discarded, or it is no longer kept",
        "look for it: tenure job list state:completed",
        Exit.NOT_FOUND,
    )


def _show(job: "JobRow", attempts: "Sequence[AttemptRow]", audit: "Sequence[AuditRow]") -> None:
    print_fields(
        {
            "job": job.id,
            "task": job.task,
            "arguments": job.args,
            "state": state(job),
            "reason": job.done_reason,
            "queue": job.queue,
            "priority": job.priority,
            "key": job.key,
            "attempt": f"{job.attempt} of {job.max_attempts}",
            "losses": job.losses,
            "created": job.created_at,
            "due": job.run_at,
            "claimed": job.claimed_at,
            "claimed by": job.claimed_by,
            "lease ends": job.lease_expires_at,
            "ended": job.ended_at,
            "result": job.result,
            "progress": job.progress,
            "cursor": job.cursor,
            "items": job.items or None,
            "schedule": (job.meta or {}).get("schedule"),
            "tick": _tick(job),
            "meta": job.meta,
        }
    )
    if attempts:
        print_lines([""])
        print_table(
            ("token", "attempt", "outcome", "started", "ended", "renewals", "error"),
            [
                (
                    attempt.token,
                    attempt.attempt,
                    f"{attempt.outcome}, late" if attempt.late else attempt.outcome,
                    attempt.started_at,
                    attempt.ended_at,
                    attempt.renewals,
                    f"{attempt.error_type}: {attempt.error_message}"
                    if attempt.error_type
                    else None,
                )
                for attempt in attempts
            ],
        )
    if audit:
        print_lines([""])
        print_table(
            ("at", "by", "from", "action", "reason"),
            [(row.at, row.actor, row.source, row.action, row.reason) for row in audit],
        )


def _show_operations(operations: "Sequence[Membership]") -> None:
    """What operations on many jobs did to this one: that is not in its own audit."""
    if operations:
        print_lines([""])
        print_table(
            ("operation", "kind", "outcome", "by", "from", "reason", "started"),
            [
                (
                    member.operation.id,
                    member.operation.kind,
                    member.outcome or "to come",
                    member.operation.actor,
                    member.operation.source,
                    member.operation.reason,
                    member.operation.created_at,
                )
                for member in operations
            ],
        )


def _tick(job: "JobRow") -> datetime | None:
    """The tick of its schedule that the job is for."""
    at = (job.meta or {}).get("tick_at")
    return None if at is None else datetime.fromisoformat(at)
