"""One job as people read it: where it is, its attempts with their errors, what was done to it."""

from datetime import datetime
from typing import TYPE_CHECKING

from tenure.cli.data import print_fields, print_lines, print_table
from tenure.cli.listing import error_text, state
from tenure.cli.words import safe_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from tenure.admin import AttemptRow, AuditRow, JobRow, Membership


def print_job(
    job: "JobRow",
    attempts: "Sequence[AttemptRow]",
    audit: "Sequence[AuditRow]",
    operations: "Sequence[Membership]",
    workers: "Mapping[UUID, str]",
) -> None:
    """Print all that is known of a job; the trace and the log of its last attempt, and of the
    others what they ended with. `workers` are the names of those that are still known."""
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
        _print_attempts(attempts, workers)
    if audit:
        print_lines([""])
        print_table(
            ("at", "by", "from", "action", "reason"),
            [(row.at, row.actor, row.source, row.action, row.reason) for row in audit],
        )
    _print_operations(operations)


def _losses(job: "JobRow") -> str:
    """How often its own process died, how often anything else that ran it, and how often in all."""
    if not job.deaths:
        return "0"
    return f"{job.losses} own, {job.worker_losses} of workers, {job.deaths} in all"


def _print_attempts(attempts: "Sequence[AttemptRow]", workers: "Mapping[UUID, str]") -> None:
    print_lines([""])
    print_table(
        ("token", "attempt", "outcome", "worker", "started", "ended", "renewals", "error"),
        [
            (
                attempt.token,
                attempt.attempt,
                f"{attempt.outcome}, late" if attempt.late else attempt.outcome,
                workers.get(attempt.claimed_by, attempt.claimed_by),
                attempt.started_at,
                attempt.ended_at,
                attempt.renewals,
                error_text(attempt),
            )
            for attempt in attempts
        ],
    )
    last = attempts[-1]
    for name, text in (("trace", last.error_trace), ("log", last.log)):
        if text:
            print_lines(["", f"{name} of the last attempt:"])
            print_lines(f"  {line}" for line in safe_lines(text))


def _print_operations(operations: "Sequence[Membership]") -> None:
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
