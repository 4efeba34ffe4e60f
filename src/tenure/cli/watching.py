"""`tenure job watch`: one job's state and progress, a line per change, until it ends."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.data import print_json, print_lines, shown
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.listing import state
from tenure.cli.looking import unknown
from tenure.cli.options import DatabaseUrl, JobNumber, SchemaName, opened
from tenure.cli.words import safe, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenure.admin import JobRow

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
        say(f"it goes on; to see it: tenure job show {job_id}")
        return Exit.INTERRUPTED
    return Exit.DONE if completed else Exit.FAILED


def _changes(job_id: int, url: str | None, schema: str | None) -> "Iterator[JobRow]":
    """The job as often as there is news of it, its end included. Once it was seen, a database that
    does not answer is asked again."""
    last: list[object] = []
    while True:
        try:
            with opened(url, schema) as admin:
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
        except Failure as failed:
            if not last or failed.code is not Exit.UNREACHABLE:
                raise
            say("the database did not answer; it is asked again")
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
