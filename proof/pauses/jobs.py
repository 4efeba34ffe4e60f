"""Handlers that mostly wait, so that one process holds hundreds of leases: some answer with their
fence, some write one row of the ledger through the job's own transaction."""

import asyncio
import os

from proof.crash.jobs import ENTER, OFTEN, PRIORITY, QUEUE, SCALED, first, refusals, say
from tenure import AsyncJob, Tenure
from tenure.config import Backoff

app = Tenure(defaults=SCALED)
_task = app.task(
    queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN, backoff=Backoff(1, 1)
)
TARGET = f"{__name__}:app"


async def _wait(job: AsyncJob, seconds: float) -> None:
    """Wait, and ignore a cancel two times of three: a handler that sleeps past its lease and does
    not respond still offers its result. Of those lost before, a third is still running when the
    sleeper wakes, so that a stale write could hit it; the rest is brief."""
    if not first(job.fence):
        seconds = seconds / 2 if job.id % 3 == 0 else 0.0
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if job.id % 3 == 1:
            raise


@_task
async def wait_and_answer(job: AsyncJob, seconds: float) -> int:
    """Return a result, which the worker settles."""
    say("begun", job)
    await _wait(job, seconds)
    return job.fence


@_task
async def wait_and_enter(job: AsyncJob, before: float, within: float) -> None:
    """Write one row of the ledger."""
    say("begun", job)
    await _wait(job, before)
    with refusals(job):
        async with job.transaction() as connection:
            await connection.execute(ENTER, [job.id, job.fence, os.getpid()])
            say("written", job)
            await _wait(job, within)
    say("left", job)


ANSWERING = (wait_and_answer.name,)
ENTERING = (wait_and_enter.name,)
