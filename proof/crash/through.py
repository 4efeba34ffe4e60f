"""Handlers that write the ledger, and complete their job, in a transaction of another driver."""

import asyncio
import os
import time
from random import Random

from proof.crash.jobs import OFTEN, PRIORITY, QUEUE, app, refusals, say
from support.drivers import DRIVERS
from tenure import AsyncJob, Job
from tenure._model.job import NewJob

_BY_NAME = {driver.name: driver for driver in DRIVERS}
# Each part of the suite, and who is used in it.
THROUGH = {
    "kills-through-sqlalchemy": (
        "SQLAlchemy Session, psycopg",
        "SQLAlchemy AsyncSession, psycopg",
        "SQLAlchemy AsyncSession, asyncpg",
    ),
    "kills-through-asyncpg": ("asyncpg", "asyncpg, from a pool"),
    "kills-through-django": ("Django, transaction.atomic",),
}


def _entry(job: Job | AsyncJob) -> str:
    return f"INSERT INTO ledger VALUES ({job.id}, {job.fence}, {os.getpid()})"


@app.task(queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN)
def enter_through(job: Job, driver: str, before: float, within: float) -> None:
    """Write one row of the ledger, in a thread."""
    opened = _BY_NAME[driver].opened
    assert opened is not None
    say("begun", job)
    time.sleep(before)
    with refusals(job), opened(os.environ["TENURE_DATABASE_URL"]) as (connection, write):
        say("inside", job)
        write(_entry(job))
        say("written", job)
        time.sleep(within)
        job.complete(connection=connection)
    say("left", job)


@app.task(queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN)
async def aenter_through(job: AsyncJob, driver: str, before: float, within: float) -> None:
    """Write one row of the ledger, on the loop."""
    aopened = _BY_NAME[driver].aopened
    assert aopened is not None
    say("begun", job)
    await asyncio.sleep(before)
    with refusals(job):
        async with aopened(os.environ["TENURE_DATABASE_URL"]) as (connection, write):
            say("inside", job)
            await write(_entry(job))
            say("written", job)
            await asyncio.sleep(within)
            await job.complete(connection=connection)
    say("left", job)


def make(part: str, rng: Random) -> NewJob:
    """One job that writes the ledger through one of the part's drivers."""
    driver = rng.choice(THROUGH[part])
    task = enter_through if _BY_NAME[driver].opened else aenter_through
    return task.bind(driver, rng.uniform(0.02, 0.5), rng.uniform(0, 0.15)).job


ENTERING = (enter_through.name, aenter_through.name)
