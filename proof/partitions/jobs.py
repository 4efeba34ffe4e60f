"""Handlers that leave effects outside their transaction until they are told to stop: on the loop,
in threads and in processes. They answer with their fence."""

import asyncio
import time

from proof.crash.jobs import OFTEN, PRIORITY, QUEUE, SCALED, first, say
from proof.partitions import effects
from tenure import AsyncJob, Job, Tenure
from tenure.config import Backoff

app = Tenure(defaults=SCALED)
TARGET = f"{__name__}:app"
STEP = 0.2


def _until(job: Job | AsyncJob, seconds: float) -> float:
    """When to end by itself; what was lost before leaves one effect and is done."""
    say("begun", job)
    return time.monotonic() + (seconds if first(job.fence) else 0.0)


@app.task(
    queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN, backoff=Backoff(1, 1)
)
async def on_loop(job: AsyncJob, seconds: float) -> int:
    """Leave effects from the event loop."""
    until = _until(job, seconds)
    effects.leave(job)
    while time.monotonic() < until:
        await asyncio.sleep(STEP)
        effects.leave(job)
    return job.fence


@app.task(
    queue=QUEUE, priority=PRIORITY, max_attempts=OFTEN, max_losses=OFTEN, backoff=Backoff(1, 1)
)
def in_thread(job: Job, seconds: float) -> int:
    """Leave effects from a thread."""
    return _leave_until(job, _until(job, seconds))


@app.task(
    queue=QUEUE,
    priority=PRIORITY,
    max_attempts=OFTEN,
    max_losses=OFTEN,
    backoff=Backoff(1, 1),
    process=True,
)
def in_process(job: Job, seconds: float) -> int:
    """Leave effects from a process of its own."""
    return _leave_until(job, _until(job, seconds))


def _leave_until(job: Job, until: float) -> int:
    effects.leave(job)
    while time.monotonic() < until:
        time.sleep(STEP)
        effects.leave(job)
    return job.fence


ANSWERING = (on_loop.name, in_thread.name, in_process.name)
