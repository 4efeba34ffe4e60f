"""`tenure job`: enqueue, list, show, why, watch."""

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure.cli import job_actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.fields import ARGS, ENQUEUE_FIELDS, admin_command, takes_fields
from tenure.cli.job_output import error_of, print_enqueued, print_found, print_job, state
from tenure.cli.options import (
    After,
    CommandContext,
    Commands,
    Count,
    DatabaseUrl,
    JobNumber,
    SchemaName,
    connect_admin,
    operator_command,
)
from tenure.cli.output import print_json, print_lines, print_note, safe, shown
from tenure.cli.selectors import OfQueue, OfTask, SelectorWords, build_selector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tenure.types import JobRow


app: typer.Typer = typer.Typer(
    cls=Commands, name="job", help="Jobs: enqueue them, look at them, steer them."
)


@app.command("enqueue")
@admin_command(changes=True)
@takes_fields(ENQUEUE_FIELDS)
def enqueue(
    context: CommandContext,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    *,
    args: ARGS = None,
    hold: Annotated[bool, typer.Option("--hold", help="Held, until it is resumed.")] = False,
    fields: dict[str, Any],
) -> int:
    """Put one job into its queue, and print its id.

    The task's own options (queue, attempts, lease) are in the program that has it, and are not
    known here: say what differs from the defaults.
    """
    named = {} if args is None else args
    answer = context.admin.jobs.enqueue(task, named, context.by, held=hold, **fields)
    queue = fields.get("queue", "default")
    return print_enqueued(answer, f"in queue {queue}", as_json=context.as_json)


class StateName(StrEnum):
    """The states by name, without loading what knows them; a test holds them to be the same."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@operator_command(app, "list")
def list_jobs(
    ctx: CommandContext,
    words: SelectorWords = None,
    *,
    state: Annotated[
        StateName | None,
        typer.Option("--state", help="In which state; without any selector, those queued."),
    ] = None,
    queue: OfQueue = None,
    task: OfTask = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """Show the jobs that a selector means, newest first; without one, what is queued."""
    said = StateName.QUEUED if state is None and not words else state
    selector = build_selector(words, state=said, queue=queue, task=task)
    print_found(ctx.admin, selector, count=count, after=after, as_json=ctx.as_json)
    return Exit.DONE


@operator_command(app, "show")
def show(ctx: CommandContext, job_id: JobNumber) -> int:
    """Show one job: where it is, each of its attempts, and what was done to it."""
    job = ctx.admin.jobs.get(job_id)
    shown = ctx.admin.settings.redactor()
    attempts = [shown.attempt(each, of=job) for each in ctx.admin.jobs.attempts(job_id)]
    audit = ctx.admin.audit.list(f"job:{job_id}")
    operations = ctx.admin.operations.of(job_id)
    workers: dict[UUID, str] = {row.id: row.name for row in ctx.admin.workers.list()}
    if job is None:
        raise unknown(job_id)
    job = shown.job(job)
    if ctx.as_json:
        print_json({"job": job, "attempts": attempts, "audit": audit, "operations": operations})
    else:
        print_job(job, attempts, audit, operations, workers)
    return Exit.DONE


@operator_command(app, "why")
def why(ctx: CommandContext, job_id: JobNumber) -> int:
    """Say why a job is not running, or who runs it, or how it ended."""
    from tenure.types import ExplanationCode

    standing = ctx.admin.jobs.why(job_id)
    error = None
    if standing.code is ExplanationCode.ENDED and (job := ctx.admin.jobs.get(job_id)) is not None:
        error = error_of(ctx.admin, [job]).get(job_id)
    if standing.code is ExplanationCode.UNKNOWN:
        raise unknown(job_id)
    if ctx.as_json:
        print_json(standing)
    else:
        print_lines([safe(standing.sentence)])
        if error is not None:
            print_lines([f"Its last error: {safe(error)}"])
    return Exit.DONE


def unknown(job_id: int) -> CommandError:
    """The failure for a job that there is not."""
    return CommandError(
        f"there is no job {job_id}",
        "it never was, it was discarded, or it is no longer kept",
        "look for it: tenure job list state:completed",
        Exit.NOT_FOUND,
    )


_LOOK = 1.0
# What a person or a program waits for; that a lease was renewed is no news.
_NEWS = (
    *("state", "attempt", "held", "cancel_requested", "run_at", "claimed_at", "progress"),
    *("items", "ended_at"),
)
JsonLines = Annotated[
    bool, typer.Option("--json", help="The whole job as one line of JSON per change.")
]


@app.command("watch")
def watch(
    job_id: JobNumber,
    *,
    as_json: JsonLines = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Follow a job, a line per change, until it ends: 0 if it completed, else 1.

    Ctrl-C stops watching, and the job goes on.
    """
    completed = False
    try:
        for job in _changes(job_id, database_url, schema):
            if as_json:
                print_json(job)
            else:
                print_lines([_line(job)])
            sys.stdout.flush()
            completed = job.state == "completed"
    except KeyboardInterrupt:
        print_note(f"it goes on; to see it: tenure job show {job_id}")
        return Exit.INTERRUPTED
    return Exit.DONE if completed else Exit.FAILED


def _changes(job_id: int, url: str | None, schema: str | None) -> "Iterator[JobRow]":
    """The job as often as there is news of it, its end included. Once it was seen, a database that
    does not answer is asked again."""
    last: list[object] = []
    while True:
        try:
            with connect_admin(url, schema) as admin:
                while True:
                    job = admin.jobs.get(job_id)
                    if job is None:
                        raise unknown(job_id)
                    news = [getattr(job, name) for name in _NEWS]
                    if news != last:
                        last = news
                        yield admin.settings.redactor().job(job)
                    if job.ended_at is not None:
                        return
                    time.sleep(_LOOK)
        except CommandError as failed:
            if not last or failed.code is not Exit.UNREACHABLE:
                raise
            print_note("the database did not answer; it is asked again")
            time.sleep(_LOOK)


def _line(job: "JobRow") -> str:
    """Where the job is and how far it has come, in one line."""
    parts = [shown(job.ended_at or job.claimed_at or job.run_at), state(job)]
    if job.attempt:
        parts.append(f"attempt {job.attempt} of {job.max_attempts}")
    progress = job.progress or {}
    if "done" in progress:
        parts.append(f"{progress['done']} of {progress.get('total', '?')}")
    parts += [str(part) for part in (progress.get("message"), job.done_reason) if part]
    return safe(", ".join(parts))


job_actions.add_commands(app)
