"""The app that the workers run: handlers whose one effect is a row of the ledger, written through
the job's own transaction. They say in the history how far they are."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from proof import mutations
from proof.crash.history import REFUSED, Pen
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS, Backoff
from tenure.errors import LeaseLost

# A handler whose connection was cut fails, and is tried again soon.
SCALED = replace(DEFAULTS.scaled(0.1), backoff=Backoff(base=1, cap=3))
LEASE = SCALED.lease.total_seconds()
QUEUE = "crash"
PRIORITY = 5
PRIORITY_OF_BACKLOG = 3
LEDGER = "CREATE TABLE ledger (job_id bigint NOT NULL, token bigint NOT NULL, pid integer NOT NULL)"
ENTER = "INSERT INTO ledger VALUES (%s, %s, %s)"
# The kills come from outside: no number of them says anything against the job.
OFTEN = 50

app = Tenure(defaults=SCALED, imports=["proof.crash.through"])
if os.environ.get("PROOF_BUG"):
    mutations.apply(os.environ["PROOF_BUG"])


@cache
def _pen() -> Pen:
    return Pen(os.environ["PROOF_HISTORY"])


def say(phase: str, job: Job | AsyncJob) -> None:
    _pen().write(phase, job.id, job.fence)


def first(fence: int) -> bool:
    """Whether it is the first token of its timeline. A loss gives the attempt back, so its number
    does not tell."""
    return fence == fence >> 40 << 40


@contextmanager
def refusals(job: Job | AsyncJob) -> Iterator[None]:
    try:
        yield
    except LeaseLost:
        say(REFUSED, job)
        raise


@app.task(queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN)
def enter(job: Job, before: float, within: float) -> None:
    """Write one row of the ledger, in a thread."""
    say("begun", job)
    time.sleep(before)
    with refusals(job), job.transaction() as connection:
        say("inside", job)
        connection.execute(ENTER, [job.id, job.fence, os.getpid()])
        say("written", job)
        time.sleep(within)
    say("left", job)


@app.task(queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN)
async def aenter(job: AsyncJob, before: float, within: float) -> None:
    """Write one row of the ledger, on the loop."""
    say("begun", job)
    await asyncio.sleep(before)
    with refusals(job):
        async with job.transaction() as connection:
            say("inside", job)
            await connection.execute(ENTER, [job.id, job.fence, os.getpid()])
            say("written", job)
            await asyncio.sleep(within)
    say("left", job)


@app.task(queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN)
def answer(job: Job, seconds: float) -> int:
    """Return a result, which the worker settles."""
    say("begun", job)
    time.sleep(seconds)
    return job.fence


@app.task(queue=QUEUE, priority=PRIORITY_OF_BACKLOG, max_attempts=OFTEN, max_losses=OFTEN)
async def wait(job: AsyncJob, seconds: float) -> None:
    """One of the many that wait; when its turn comes it takes a moment."""
    say("begun", job)
    await asyncio.sleep(seconds)


ENTERING = (enter.name, aenter.name)
