"""`tenure job`: enqueue, list, show, why, watch."""

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure.cli import job_actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.fields import ENQUEUE_FIELDS
from tenure.cli.help import HelpGroup
from tenure.cli.job_output import error_of, print_enqueued, print_found, print_job, state
from tenure.cli.options import (
    After,
    CommandContext,
    Count,
    JobNumber,
    connect_admin,
    operator_command,
)
from tenure.cli.output import print_json, print_lines, print_note, safe, shown
from tenure.cli.selectors import OfQueue, OfTask, SelectorTerms, build_selector
from tenure.types import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from tenure.types import JobRow


app: typer.Typer = typer.Typer(cls=HelpGroup, name="job", help="Enqueue, inspect and manage jobs.")


@operator_command(
    app,
    "enqueue",
    example="""tenure job enqueue jobs.hello --args '{"name": "Ada"}'""",
    fields=ENQUEUE_FIELDS,
    changes=True,
)
def enqueue(
    ctx: CommandContext,
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Name of the task.", show_default=False)
    ] = None,
    *,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="URL", help="Send an HTTP request instead of a task."),
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option("--shell", metavar="COMMAND", help="Run a command instead of a task."),
    ] = None,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc", metavar="HOST:PORT/METHOD", help="Make a gRPC call instead of a task."
        ),
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Hold the job until you resume it.")] = False,
    fields: dict[str, Any],
) -> int:
    """Enqueue a job and print its id.

    The command doesn't load your app, so it doesn't know the task's `@app.task` options. Pass the
    queue, lease and timeout that the task needs. If a live job has the same `--key`, the command
    prints that job's id and enqueues nothing.

    With `--http`, `--shell` or `--grpc`, a worker started with `--kinds` does the work. `--args`
    then has the other fields, such as `{"json": {"order": 7}, "secret": "orders"}`.

    JSON: `id` and `created`, which is false if the key was taken.
    """
    args = fields.pop("args", {})
    task, args = _work(task, args, http=http, shell=shell, grpc=grpc)
    answer = ctx.admin.jobs.enqueue(task, args, ctx.by, held=hold, **fields)
    queue = fields.get("queue") or _default_queue(task)
    return print_enqueued(answer, f"in queue {queue}", as_json=ctx.as_json)


def _work(
    task: str | None, args: dict[str, Any], **kinds: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the task and arguments. A kind of work is a task of its own."""
    given = {kind: text for kind, text in kinds.items() if text is not None}
    if len(given) + (task is not None) != 1:
        raise CommandError(
            "the command does not know what to enqueue",
            "it needs exactly one of TASK, --http, --shell and --grpc",
            "name a task, as in: tenure job enqueue jobs.hello",
            Exit.USAGE,
        )
    for kind, text in given.items():
        return f"tenure.{kind}", {**_arguments(kind, text), **args}
    return task or "", args


def _arguments(kind: str, text: str) -> dict[str, Any]:
    if kind == "http":
        return {"method": "POST", "url": text}
    if kind == "shell":
        import shlex

        return {"argv": shlex.split(text)}
    target, _, method = text.partition("/")
    return {"target": target, "method": method}


def _default_queue(task: str) -> str:
    from tenure.kinds import definition

    return definition(task).queue


@operator_command(app, "list", example="tenure job list --queue mail")
def list_jobs(
    ctx: CommandContext,
    terms: SelectorTerms = None,
    *,
    state: Annotated[
        State | None,
        typer.Option(
            "--state",
            metavar="|".join(State),
            help="Show only jobs in this state.",
            show_default="queued, without a selector",
        ),
    ] = None,
    queue: OfQueue = None,
    task: OfTask = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """List jobs, newest first.

    Without a selector, lists queued jobs. Quote `<` and `>` for the shell, as in
    `tenure job list state:failed 'created:<2h'`. `--state`, `--queue` and `--task` are short for
    `state:`, `queue:` and `task:`. Redacted fields are hidden.

    JSON: `jobs`, `next` and `searched`.
    """
    state = State.QUEUED if state is None and not terms else state
    selector = build_selector(terms, state=state, queue=queue, task=task)
    print_found(ctx.admin, selector, count=count, after=after, as_json=ctx.as_json)
    return Exit.DONE


@operator_command(app, "show", example="tenure job show 7")
def show(ctx: CommandContext, job_id: JobNumber) -> int:
    """Show a job with its attempts, audit log and operations.

    Prints the last attempt's traceback and log. Exits with 3 if the job does not exist.

    JSON: `job`, `attempts` (each with its traceback and log), `audit` and `operations`.
    """
    job = ctx.admin.jobs.get(job_id)
    shown = ctx.admin.settings.redactor()
    attempts = [shown.attempt(each, of=job) for each in ctx.admin.jobs.attempts(job_id)]
    audit = [*map(shown.audit, ctx.admin.audit.list(f"job:{job_id}"))]
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


@operator_command(app, "why", example="tenure job why 7")
def why(ctx: CommandContext, job_id: JobNumber) -> int:
    """Explain why a job is waiting, running or ended.

    Prints one sentence and, for a dead letter, its last error. Exits with 3 if the job does not
    exist.

    JSON: `job_id`, `code`, `sentence`, `until`, `by`, `reason` and `count`.
    """
    from tenure.types import ExplanationCode

    explanation = ctx.admin.jobs.why(job_id)
    error = None
    is_ended = explanation.code is ExplanationCode.ENDED
    if is_ended and (job := ctx.admin.jobs.get(job_id)) is not None:
        error = error_of(ctx.admin, [job]).get(job_id)
    if explanation.code is ExplanationCode.UNKNOWN:
        raise unknown(job_id)
    if ctx.as_json:
        print_json(explanation)
    else:
        print_lines([safe(explanation.sentence)])
        if error is not None:
            print_lines([f"Its last error: {safe(error)}"])
    return Exit.DONE


def unknown(job_id: int) -> CommandError:
    """Return the error for a job that does not exist."""
    return CommandError(
        f"job {job_id} does not exist",
        "the id is wrong, or the job was deleted or is past its retention",
        "list ended jobs: tenure job list state:completed,failed,cancelled",
        Exit.NOT_FOUND,
    )


_POLL_INTERVAL = 1.0
# Changes worth a line. A renewed lease isn't.
_WATCHED = (
    *("state", "attempt", "held", "cancel_requested", "run_at", "claimed_at", "progress"),
    *("items", "ended_at"),
)


@operator_command(app, "watch", example="tenure job watch 7")
def watch(ctx: CommandContext, job_id: JobNumber) -> int:
    """Follow a job until it ends.

    Prints a timestamped line whenever the state or progress changes. Checks once a second, and
    keeps trying while the database is unreachable. Exits with 0 if the job completed, 1 if it
    failed or was cancelled, and 3 if it does not exist. Ctrl-C stops watching, not the job.

    JSON: the whole job, one line per change.
    """
    completed = False
    try:
        for job in _changes(job_id, ctx.database_url, ctx.schema):
            if ctx.as_json:
                print_json(job)
            else:
                print_lines([_line(job, datetime.now(UTC))])
            sys.stdout.flush()
            completed = job.state == "completed"
    except KeyboardInterrupt:
        print_note(f"the job continues. To see it: tenure job show {job_id}")
        return Exit.INTERRUPTED
    return Exit.DONE if completed else Exit.FAILED


def _changes(job_id: int, url: str | None, schema: str | None) -> "Iterator[JobRow]":
    """Yield the job once at the start and then after each change, until it ends.

    After the first response, keep retrying if the database can't be reached.
    """
    last: list[object] = []
    while True:
        try:
            with connect_admin(url, schema) as admin:
                while True:
                    job = admin.jobs.get(job_id)
                    if job is None:
                        raise unknown(job_id)
                    values = [getattr(job, name) for name in _WATCHED]
                    if values != last:
                        last = values
                        yield admin.settings.redactor().job(job)
                    if job.ended_at is not None:
                        return
                    time.sleep(_POLL_INTERVAL)
        except CommandError as failed:
            if not last or failed.code is not Exit.UNREACHABLE:
                raise
            print_note("the database did not answer; trying again")
            time.sleep(_POLL_INTERVAL)


def _line(job: "JobRow", seen_at: datetime) -> str:
    """Return the job's state and progress on one line, with the line's time."""
    parts = [shown(job.ended_at or seen_at), state(job)]
    if job.attempt:
        parts.append(f"attempt {job.attempt} of {job.max_attempts}")
    progress = job.progress or {}
    if "done" in progress:
        parts.append(f"{progress['done']} of {progress.get('total', '?')}")
    parts += [str(part) for part in (progress.get("message"), job.done_reason) if part]
    return safe(", ".join(parts))


job_actions.add_commands(app)
