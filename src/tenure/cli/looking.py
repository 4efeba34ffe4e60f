"""`tenure job list`, `show` and `why`: looking at jobs, changing nothing."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.data import print_fields, print_json, print_lines, print_table
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import AsJson, DatabaseUrl, JobNumber, SchemaName, opened
from tenure.cli.words import safe, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Admin, AttemptRow, AuditRow, JobRow, Membership

# A page may come short where jobs are sparse; this many are asked for before saying so.
_PAGES = 100


class StateName(StrEnum):
    """The states by name, without loading what knows them; a test holds them to be the same."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


def list_jobs(
    *,
    state: Annotated[StateName, typer.Option("--state", help="In which state.")] = StateName.QUEUED,
    queue: Annotated[
        str | None, typer.Option("-q", "--queue", metavar="NAME", help="Of this queue.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="Of this task.")
    ] = None,
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
    """Show jobs in one state, newest first. `--state failed` shows the dead letters."""
    with opened(database_url, schema) as admin:
        print_jobs(admin, state, queue=queue, task=task, count=count, after=after, as_json=as_json)
    return Exit.DONE


def print_jobs(
    admin: "Admin",
    state: StateName,
    *,
    queue: str | None,
    task: str | None,
    count: int,
    after: str | None,
    as_json: bool,
    signature: str | None = None,
) -> None:
    """Print a list of jobs, and say where the next one goes on."""
    from tenure.admin import State

    jobs: list[JobRow] = []
    for _ in range(_PAGES):
        page = admin.jobs(
            State(state),
            queue=queue,
            task=task,
            signature=signature,
            count=count - len(jobs),
            after=after,
        )
        jobs += page.jobs
        after = page.next
        if after is None or len(jobs) == count:
            break
    jobs = [*map(admin.redactor().job, jobs)]
    if as_json:
        print_json({"jobs": jobs, "next": after})
    elif jobs:
        print_table(
            ("id", "state", "task", "queue", "priority", "attempt", "due", "ended", "reason"),
            [
                (
                    job.id,
                    _state(job),
                    job.task,
                    job.queue,
                    job.priority,
                    f"{job.attempt} of {job.max_attempts}",
                    job.run_at,
                    job.ended_at,
                    job.done_reason,
                )
                for job in jobs
            ],
        )
    if after:
        say(f"{len(jobs)} shown; more may follow: --after {after}")
    else:
        say(f"{len(jobs)} shown; no more")


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
        raise _unknown(job_id)
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
        raise _unknown(job_id)
    if as_json:
        print_json(standing)
    else:
        print_lines([safe(standing.sentence)])
    return Exit.DONE


def _unknown(job_id: int) -> Failure:
    return Failure(
        f"there is no job {job_id}",
        "it never was, it was discarded, or it is no longer kept",
        "look for it: tenure job list --state completed",
        Exit.NOT_FOUND,
    )


def _show(job: "JobRow", attempts: "Sequence[AttemptRow]", audit: "Sequence[AuditRow]") -> None:
    print_fields(
        {
            "job": job.id,
            "task": job.task,
            "arguments": job.args,
            "state": _state(job),
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


def _state(job: "JobRow") -> str:
    """The state, with what an operator or a request has added to it."""
    held = ", held" if job.held else ""
    return f"{job.state}{held}{', cancel requested' if job.cancel_requested else ''}"
