"""Print a job, or a list of jobs."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tenure.cli.errors import Exit
from tenure.cli.output import (
    print_audit,
    print_fields,
    print_json,
    print_lines,
    print_note,
    print_page_end,
    print_rows,
    safe,
    safe_lines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from tenure.admin import Admin
    from tenure.types import AttemptRow, AuditRow, EnqueueResult, JobRow, Membership, Selector


# A page can be short if matches are sparse. Request this many pages before printing.
_PAGES = 100
# How much of an error a list shows.
_WIDEST_ERROR = 200


def print_enqueued(answer: "EnqueueResult", where: str, *, as_json: bool) -> int:
    """Print an enqueued job's id, or the id of the job that holds its key."""
    if as_json:
        print_json(answer)
    else:
        print_lines([str(answer.id)])
    if answer.created:
        print_note(f"enqueued job {answer.id} {where}")
    else:
        print_note(f"job {answer.id} already has this key; nothing was enqueued")
    return Exit.DONE


def print_found(
    admin: "Admin", selector: "Selector", *, count: int, after: str | None, as_json: bool
) -> None:
    """Print the jobs that match a selector, how many were searched, and how to continue."""
    jobs: list[JobRow] = []
    searched, took = 0, timedelta()
    for _ in range(_PAGES):
        page = admin.jobs.search(
            selector, count=count - len(jobs), after=after, largest=None if as_json else 0
        )
        jobs += page.jobs
        after = page.next
        searched, took = searched + page.searched, took + page.took
        if after is None or len(jobs) == count:
            break
    print_note(f"searched {searched:,} in {took / timedelta(milliseconds=1):,.0f} ms")
    print_jobs(admin, jobs, after=after, as_json=as_json, searched=searched)


def print_jobs(
    admin: "Admin", jobs: "Sequence[JobRow]", *, after: str | None, as_json: bool, **also: int
) -> None:
    """Print a list of jobs, and how to continue."""
    errors = {} if as_json else error_of(admin, jobs)
    jobs = [*map(admin.settings.redactor().job, jobs)]
    if as_json:
        print_json({"jobs": jobs, "next": after, **also})
    elif jobs:
        print_rows(
            jobs,
            *("id", ("state", state), "task", "queue", "priority"),
            ("attempt", lambda job: f"{job.attempt} of {job.max_attempts}"),
            *(("due", "run_at"), ("ended", "ended_at"), ("reason", "done_reason")),
            ("error", lambda job: _cut(errors.get(job.id))),
        )
    print_page_end(len(jobs), "--after", after)


def error_of(admin: "Admin", jobs: "Sequence[JobRow]") -> "Mapping[int, str]":
    """Return each failed job's last error, by job id."""
    failed = [job.id for job in jobs if job.state == "failed"]
    if not failed:
        return {}
    shown = admin.settings.redactor()
    # What an error may quote: a list has no arguments.
    of = {job.id: job for job in admin.jobs.get_many(failed)}
    last = [
        shown.attempt(one, of=of[one.job_id])
        for one in admin.jobs.last_attempts(failed)
        if one.job_id in of
    ]
    return {one.job_id: text for one in last if (text := error_text(one)) is not None}


def error_text(attempt: "AttemptRow") -> str | None:
    """Return an attempt's error: its type and message."""
    if attempt.error_type is None:
        return None
    return f"{attempt.error_type}: {attempt.error_message}"


def _cut(error: str | None) -> str | None:
    if error is None:
        return None
    line = safe(error)
    return line if len(line) <= _WIDEST_ERROR else f"{line[: _WIDEST_ERROR - 1]}…"


def state(job: "JobRow") -> str:
    """Return the state, and whether the job is held or has a cancel request."""
    held = ", held" if job.held else ""
    return f"{job.state}{held}{', cancel requested' if job.cancel_requested else ''}"


def print_job(
    job: "JobRow",
    attempts: "Sequence[AttemptRow]",
    audit: "Sequence[AuditRow]",
    operations: "Sequence[Membership]",
    workers: "Mapping[UUID, str]",
) -> None:
    """Print a job with its attempts, and the traceback and log of the last attempt.

    `workers` maps worker ids to names, for workers that are still known.
    """
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
            "losses": _losses(job),
            "created": job.created_at,
            "due": job.run_at,
            "claimed": job.claimed_at,
            "claimed by": job.claimed_by and workers.get(job.claimed_by, job.claimed_by),
            "lease expires": job.lease_expires_at,
            "ended": job.ended_at,
            "result": job.result,
            "progress": job.progress,
            "cursor": job.cursor,
            "items": job.items or None,
            "schedule": (job.meta or {}).get("schedule"),
            "scheduled for": _tick(job),
            "runs again": (job.meta or {}).get("rerun_of"),
            "meta": job.meta,
        }
    )
    if attempts:
        _print_attempts(attempts, workers)
    if audit:
        print_lines([""])
        print_audit(audit)
    _print_operations(operations)


def _losses(job: "JobRow") -> str:
    """Return the job's loss counts: its own process died, its worker died, and the total."""
    if not job.deaths:
        return "0"
    return f"{job.losses} of its process, {job.worker_losses} of its worker, {job.deaths} in all"


def _print_attempts(attempts: "Sequence[AttemptRow]", workers: "Mapping[UUID, str]") -> None:
    print_lines([""])
    print_rows(
        attempts,
        *("token", "attempt"),
        ("outcome", lambda one: f"{one.outcome}, late" if one.late else one.outcome),
        ("worker", lambda one: workers.get(one.claimed_by, one.claimed_by)),
        *(("started", "started_at"), ("ended", "ended_at"), "renewals", ("error", error_text)),
    )
    last = attempts[-1]
    for name, text in (("traceback", last.error_trace), ("log", last.log)):
        if text:
            print_lines(["", f"{name} of the last attempt:"])
            print_lines(f"  {line}" for line in safe_lines(text))


def _print_operations(operations: "Sequence[Membership]") -> None:
    """Print the operations that included this job. Its own audit log doesn't list them."""
    if operations:
        print_lines([""])
        print_rows(
            operations,
            *(("operation", "operation.id"), ("kind", "operation.kind")),
            ("outcome", lambda member: member.outcome or "pending"),
            *(("by", "operation.actor"), ("from", "operation.source")),
            *(("reason", "operation.reason"), ("started", "operation.created_at")),
        )


def _tick(job: "JobRow") -> datetime | None:
    """Return the scheduled time of the run that created the job."""
    at = (job.meta or {}).get("tick_at")
    return None if at is None else datetime.fromisoformat(at)
