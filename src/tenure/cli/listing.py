"""Jobs as a table or as JSON, and the words that say what was searched."""

from datetime import timedelta
from typing import TYPE_CHECKING

from tenure.cli.data import print_json, print_table
from tenure.cli.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Admin, JobRow, Selector

# A page may come short where jobs are sparse; this many are asked for before saying so.
_PAGES = 100


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
    jobs = [*map(admin.redactor().job, jobs)]
    if as_json:
        print_json({"jobs": jobs, "next": after, **also})
    elif jobs:
        print_table(
            ("id", "state", "task", "queue", "priority", "attempt", "due", "ended", "reason"),
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
                )
                for job in jobs
            ],
        )
    if after:
        say(f"{len(jobs)} shown; more may follow: --after {after}")
    else:
        say(f"{len(jobs)} shown; no more")


def state(job: "JobRow") -> str:
    """The state, with what an operator or a request has added to it."""
    held = ", held" if job.held else ""
    return f"{job.state}{held}{', cancel requested' if job.cancel_requested else ''}"
