"""`tenure job`: enqueue, list, show, why, watch."""

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli import job_actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.job_output import error_of, print_found, print_job, state
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    JobNumber,
    Reason,
    SchemaName,
    Who,
    actor,
    arguments,
    connect_admin,
    duration_option,
    instant,
    parse_duration,
)
from tenure.cli.output import print_json, print_lines, print_note, safe, shown
from tenure.cli.selectors import OfQueue, OfTask, SelectorWords, build_selector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tenure.types import JobRow


def enqueue(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    *,
    args: Annotated[
        str,
        typer.Option("--args", metavar="JSON", help="The arguments by name; - reads stdin."),
    ] = "{}",
    queue: Annotated[
        str, typer.Option("-q", "--queue", metavar="NAME", help="The queue it goes into.")
    ] = "default",
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="0-9", help="9 is the most urgent.")
    ] = None,
    delay: Annotated[str | None, duration_option("--delay", "Due only after this long:")] = None,
    run_at: Annotated[
        str | None,
        typer.Option("--run-at", metavar="INSTANT", help="Due then: 2030-01-31T09:00+01:00."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="One living job of the task per key."),
    ] = None,
    key_for: Annotated[
        str | None, duration_option("--key-for", "Keep the key this long after its end:")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", metavar="N", help="How often it is tried.")
    ] = None,
    lease: Annotated[str | None, duration_option("--lease", "How long a claim grants it:")] = None,
    timeout: Annotated[
        str | None, duration_option("--timeout", "How long an attempt may run:")
    ] = None,
    expires_in: Annotated[
        str | None, duration_option("--expires-in", "How long it is worth starting:")
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TEXT", help="A word to find it by; may be repeated."),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option("--target", metavar="N", help="Complete once it has this many items."),
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Held, until it is resumed.")] = False,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Put one job into its queue, and print its id.

    The task's own options (queue, attempts, lease) are in the program that has it, and are not
    known here: say what differs from the defaults.
    """
    named = arguments(args)
    with connect_admin(database_url, schema) as admin:
        answer = admin.enqueue(
            task,
            named,
            actor(who, reason),
            queue=queue,
            priority=priority,
            delay=parse_duration(delay),
            run_at=instant(run_at),
            key=key,
            key_for=parse_duration(key_for),
            max_attempts=max_attempts,
            lease=parse_duration(lease),
            timeout=parse_duration(timeout),
            expires_in=parse_duration(expires_in),
            tags=tags or (),
            target=target,
            held=hold,
        )
    if as_json:
        print_json(answer)
    else:
        print_lines([str(answer.id)])
    if answer.created:
        print_note(f"enqueued job {answer.id} in queue {queue}")
    else:
        print_note(f"job {answer.id} has this key already; nothing was enqueued")
    return Exit.DONE


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
    selector = build_selector(words, state=said, queue=queue, task=task)
    with connect_admin(database_url, schema) as admin:
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
    with connect_admin(database_url, schema) as admin:
        job = admin.job(job_id)
        shown = admin.redactor()
        attempts = [shown.attempt(each, of=job) for each in admin.attempts(job_id)]
        audit = admin.audit(f"job:{job_id}")
        operations = admin.operations.of(job_id)
        workers: dict[UUID, str] = {row.id: row.name for row in admin.workers()}
    if job is None:
        raise unknown(job_id)
    job = shown.job(job)
    if as_json:
        print_json({"job": job, "attempts": attempts, "audit": audit, "operations": operations})
    else:
        print_job(job, attempts, audit, operations, workers)
    return Exit.DONE


def why(
    job_id: JobNumber,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Say why a job is not running, or who runs it, or how it ended."""
    from tenure.types import ExplanationCode

    with connect_admin(database_url, schema) as admin:
        standing = admin.why(job_id)
        error = None
        if standing.code is ExplanationCode.ENDED and (job := admin.job(job_id)) is not None:
            error = error_of(admin, [job]).get(job_id)
    if standing.code is ExplanationCode.UNKNOWN:
        raise unknown(job_id)
    if as_json:
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
                    job = admin.job(job_id)
                    if job is None:
                        raise unknown(job_id)
                    news = [getattr(job, name) for name in _NEWS]
                    if news != last:
                        last = news
                        yield admin.redactor().job(job)
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


app: typer.Typer = typer.Typer(
    cls=Commands, name="job", help="Jobs: enqueue them, look at them, steer them."
)
app.command("enqueue")(enqueue)
app.command("list")(list_jobs)
app.command("show")(show)
app.command("why")(why)
app.command("watch")(watch)
app.command("retry")(job_actions.retry)
app.command("cancel")(job_actions.cancel)
app.command("revoke")(job_actions.revoke)
app.command("hold")(job_actions.hold)
app.command("resume")(job_actions.resume)
app.command("move")(job_actions.move)
app.command("delete")(job_actions.delete)
