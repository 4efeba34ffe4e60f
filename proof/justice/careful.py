"""Handlers that must not begin twice: `on_loss="fail"` with one attempt."""

import asyncio
import time
from typing import Any

from proof.justice.jobs import QUEUE, STEP, app, mark
from proof.justice.ledger import BEAT, END, START
from tenure import AsyncJob, Job

_OPTIONS: dict[str, Any] = {
    "queue": QUEUE,
    "timeout": None,
    "max_attempts": 1,
    "on_loss": "fail",
}


@app.task(name="pay_on_loop", **_OPTIONS)
async def pay_on_loop(job: AsyncJob, seconds: float) -> None:
    """An effect that must happen at most once, on the event loop."""
    mark(START, job)
    await asyncio.sleep(seconds)
    mark(END, job)


@app.task(name="pay_in_thread", **_OPTIONS)
def pay_in_thread(job: Job, seconds: float) -> None:
    """The same in a thread."""
    _pay(job, seconds)


@app.task(name="pay_in_process", process=True, **_OPTIONS)
def pay_in_process(job: Job, seconds: float) -> None:
    """The same in a process of its own."""
    _pay(job, seconds)


def _pay(job: Job, seconds: float) -> None:
    mark(START, job)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(STEP)
        mark(BEAT, job)
    mark(END, job)


TASKS = (pay_on_loop, pay_in_thread, pay_in_process)
