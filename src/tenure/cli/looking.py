"""`tenure job list`, `show` and `why`: looking at jobs, changing nothing."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.data import print_json, print_lines
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.listing import error_of, print_found
from tenure.cli.options import AsJson, DatabaseUrl, JobNumber, SchemaName, opened
from tenure.cli.selecting import OfQueue, OfTask, SelectorWords, meant
from tenure.cli.shown import print_job
from tenure.cli.words import safe

if TYPE_CHECKING:
    from uuid import UUID


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
    from tenure.admin import StandingCode

    with opened(database_url, schema) as admin:
        standing = admin.why(job_id)
        error = None
        if standing.code is StandingCode.ENDED and (job := admin.job(job_id)) is not None:
            error = error_of(admin, [job]).get(job_id)
    if standing.code is StandingCode.UNKNOWN:
        raise unknown(job_id)
    if as_json:
        print_json(standing)
    else:
        print_lines([safe(standing.sentence)])
        if error is not None:
            print_lines([f"Its last error: {safe(error)}"])
    return Exit.DONE


def unknown(job_id: int) -> Failure:
    """The failure for a job that there is not."""
    return Failure(
        f"there is no job {job_id}",
        "it never was, it was discarded, or it is no longer kept",
        "look for it: tenure job list state:completed",
        Exit.NOT_FOUND,
    )
