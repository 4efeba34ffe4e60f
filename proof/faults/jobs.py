"""The app of the bed, and its jobs that do no harm. Each carries a label that its client chose.

It is loaded by the last release too, in rolling restarts: it uses what that has.
"""
# ruff: noqa: ARG001 - the label is read by the proof, not by the handler

import asyncio
import os
import threading
from functools import cache
from typing import Any

import psycopg

from proof import mutations
from proof.faults.history import OPENED, Pen, now
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS, Backoff
from tenure.errors import LeaseLost

SCALED = DEFAULTS.scaled(0.1)
LEASE = SCALED.lease.total_seconds()
QUEUE = "bed"
# The faults come from outside: no number of them says anything against most jobs.
OFTEN = 60
# What a job has for a label that no client asked for, but a schedule.
SCHEDULED = -1
LEDGER = """
CREATE TABLE ledger (job_id bigint NOT NULL, token bigint NOT NULL);
CREATE INDEX ON ledger (job_id);
"""
EFFECTS = """
CREATE TABLE effect (
    job_id bigint NOT NULL,
    token bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
_TICK = {"label": SCHEDULED, "seconds": 0.0}
_ENTER = "INSERT INTO ledger VALUES (%s, %s)"
_SOON = Backoff(base=0.1, cap=0.5)
USUAL: dict[str, Any] = {
    "queue": QUEUE,
    "max_attempts": OFTEN,
    "max_losses": OFTEN,
    "backoff": _SOON,
}

app = Tenure(defaults=SCALED, program="proof-faults", version=1)
if os.environ.get("PROOF_BUG"):
    mutations.apply(os.environ["PROOF_BUG"])
_here = threading.local()


@cache
def pen() -> Pen:
    """What this process writes the history with."""
    return Pen(os.environ["PROOF_HISTORY"])


def pause(seconds: float) -> None:
    """Under a false clock `time.sleep` does not work; this does."""
    threading.Event().wait(seconds)


def began(job: Job | AsyncJob) -> None:
    """Say that a handler runs."""
    pen().instant("began", job.id, job.fence)


def first(job: Job | AsyncJob) -> bool:
    """Whether it runs under the first token of its timeline. A loss gives the attempt back, so its
    number does not tell."""
    return job.fence == job.fence >> 40 << 40


def returned(job: Job | AsyncJob) -> int:
    """The fence is the result: whose result it is shows in the result itself."""
    pen().instant("returned", job.id, job.fence)
    return job.fence


def _opened(job: Job | AsyncJob) -> float:
    """Written before, as well: a process that dies in between leaves the answer open."""
    pen().instant(OPENED, job.id, job.fence)
    return now()


def _committed(job: Job | AsyncJob, since: float, error: BaseException | None) -> None:
    answer = "ok" if error is None else "refused" if isinstance(error, LeaseLost) else "unknown"
    pen().span("commit", since, job.id, job.fence, answer)
    if error is not None:
        pen().instant("raised", job.id, job.fence)


@app.schedule(every=1, name="all", args=_TICK, missed="all", missed_limit=10_000)
@app.schedule(every=1, name="skip", args=_TICK, missed="skip")
@app.schedule("* * * * *", name="minutes", args=_TICK, missed="all")
@app.task(**USUAL)
async def answer(job: AsyncJob, label: int, seconds: float) -> int:
    """Return a result, which the worker settles."""
    began(job)
    if seconds:
        await asyncio.sleep(seconds)
    return returned(job)


@app.task(**USUAL)
def enter(job: Job, label: int, before: float, within: float) -> None:
    """Write one row of the ledger through the job's transaction, in a thread."""
    began(job)
    pause(before)
    since = _opened(job)
    try:
        with job.transaction() as connection:
            connection.execute(_ENTER, [job.id, job.fence])
            pause(within)
    except BaseException as error:
        _committed(job, since, error)
        raise
    _committed(job, since, None)


@app.task(**USUAL)
async def aenter(job: AsyncJob, label: int, before: float, within: float) -> None:
    """Write one row of the ledger through the job's transaction, on the loop."""
    began(job)
    await asyncio.sleep(before)
    since = _opened(job)
    try:
        async with job.transaction() as connection:
            await connection.execute(_ENTER, [job.id, job.fence])
            await asyncio.sleep(within)
    except BaseException as error:
        _committed(job, since, error)
        raise
    _committed(job, since, None)


@app.task(**USUAL)
def touch(job: Job, label: int, times: int) -> int:
    """Leave effects outside the transaction, in a ledger on another server."""
    began(job)
    for _ in range(times):
        _outside().execute("INSERT INTO effect VALUES (%s, %s)", [job.id, job.fence])
        pen().instant("effect", job.id, job.fence)
        pause(0.05)
    return returned(job)


def _outside() -> "psycopg.Connection[Any]":
    if not hasattr(_here, "ledger"):
        _here.ledger = psycopg.connect(os.environ["PROOF_EFFECTS"], autocommit=True)
    ledger: psycopg.Connection[Any] = _here.ledger
    return ledger


@app.task(**USUAL)
async def stumble(job: AsyncJob, label: int, failures: int, seconds: float = 0) -> int:
    """Fail some times, then return."""
    began(job)
    if job.attempt <= failures:
        await asyncio.sleep(seconds)
        pen().instant("raised", job.id, job.fence)
        raise RuntimeError("this was to be expected")
    return returned(job)


@app.task(**USUAL)
def report(job: Job, label: int, seconds: float) -> int:
    """Tell the progress again and again."""
    began(job)
    until = now() + seconds
    try:
        while now() < until:
            job.progress(message="on it")
            pause(0.1)
    except BaseException:
        pen().instant("raised", job.id, job.fence)
        raise
    return returned(job)


@app.task(**(USUAL | {"max_attempts": 1}))
async def fall(job: AsyncJob, label: int) -> int:
    """Fail for good under the first token; return in the life that a retry gives it."""
    began(job)
    if first(job):
        pen().instant("raised", job.id, job.fence)
        raise RuntimeError("this was to be expected")
    return returned(job)


@app.task(process=True, **(USUAL | {"max_losses": 1}))
def frail(job: Job, label: int, seconds: float) -> int:
    """End its own process, every second of them; the first time is the last."""
    began(job)
    pause(seconds)
    if label % 2:
        os._exit(1)
    return returned(job)


@app.task(**(USUAL | {"max_attempts": 2}))
async def weary(job: AsyncJob, label: int, failures: int) -> int:
    """Fail some times, then return, if there is an attempt left for that."""
    began(job)
    if job.attempt <= failures:
        pen().instant("raised", job.id, job.fence)
        raise RuntimeError("this was to be expected")
    return returned(job)


@app.task(process=True, **USUAL)
def apart(job: Job, label: int, seconds: float) -> int:
    """Run in a process of its own."""
    began(job)
    pause(seconds)
    return returned(job)


ENTERING = (enter.name, aenter.name)
# The most attempts and losses of one life, where they are few.
CAPS = {frail.name: (OFTEN, 1), weary.name: (2, OFTEN)}
