"""Jobs as a table or as JSON, and the words that say what was searched."""

from datetime import timedelta
from typing import TYPE_CHECKING

from tenure.cli.data import print_json, print_table
from tenure.cli.words import safe, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenure.admin import Admin, AttemptRow, JobRow, Selector

# A page may come short where jobs are sparse; this many are asked for before saying so.
_PAGES = 100
# Of an error this much is shown in a list.
_WIDEST_ERROR = 120


def print_found(
    admin: "Admin", selector: "Selector", *, count: int, after: str | None, as_json: bool
) -> None:
    """Print the jobs that a selector means, and say what was searched and where more are."""
    jobs: list[JobRow] = []
    searched, took = 0, timedelta()
    for _ in range(_PAGES):
        page = admin.search(selector, count=count - len(jobs), after=after)
        jobs += page.jobs
        after = page.next
        searched, took = searched + page.searched, took + page.took
        if after is None or len(jobs) == count:
            break
    say(f"searched {searched:,} in {took / timedelta(milliseconds=1):,.0f} ms")
    print_jobs(admin, jobs, after=after, as_json=as_json, searched=searched)


def print_jobs(
    admin: "Admin", jobs: "Sequence[JobRow]", *, after: str | None, as_json: bool, **also: int
) -> None:
    """Print a list of jobs, and say where the next one goes on."""
    errors = {} if as_json else error_of(admin, jobs)
    jobs = [*map(admin.redactor().job, jobs)]
    if as_json:
        print_json({"jobs": jobs, "next": after, **also})
    elif jobs:
        print_table(
            (
                "id",
                "state",
                "task",
                "queue",
                "priority",
                "attempt",
                "due",
                "ended",
                "reason",
                "error",
            ),
            [
                (
                    job.id,
                    state(job),
                    job.task,
                    job.queue,
                    job.priority,
                    f"{job.attempt} of {job.max_attempts}",
                    job.run_at,
                    job.ended_at,
                    job.done_reason,
                    _cut(errors.get(job.id)),
                )
                for job in jobs
            ],
        )
    if after:
        say(f"{len(jobs)} shown; more may follow: --after {after}")
    else:
        say(f"{len(jobs)} shown; no more")


def error_of(admin: "Admin", jobs: "Sequence[JobRow]") -> "Mapping[int, str]":
    """The last error of each of these jobs that has failed, in words, by the job's id."""
    failed = {job.id: job for job in jobs if job.state == "failed"}
    if not failed:
        return {}
    shown = admin.redactor()
    last = [shown.attempt(one, of=failed[one.job_id]) for one in admin.last_attempts([*failed])]
    return {one.job_id: text for one in last if (text := error_text(one)) is not None}


def error_text(attempt: "AttemptRow") -> str | None:
    """An attempt's error, by its type and message."""
    if attempt.error_type is None:
        return None
    return f"{attempt.error_type}: {attempt.error_message}"


def _cut(error: str | None) -> str | None:
    if error is None:
        return None
    line = safe(error)
    return line if len(line) <= _WIDEST_ERROR else f"{line[: _WIDEST_ERROR - 1]}…"


def state(job: "JobRow") -> str:
    """The state, with what an operator or a request has added to it."""
    held = ", held" if job.held else ""
    return f"{job.state}{held}{', cancel requested' if job.cancel_requested else ''}"
