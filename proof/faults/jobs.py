"""The app that the workers of the bed run. Each job carries a label that its client chose.

It is loaded by the last release too, in rolling restarts: it uses what that has.
"""
# ruff: noqa: ARG001 - the label is read by the proof, not by the handler

import asyncio
import ctypes
import os
import signal
import threading
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from proof import bugs
from proof.faults.history import HARM, OPENED, Pen, now
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS, Backoff
from tenure.errors import LeaseLost

SCALED = DEFAULTS.scaled(0.1)
LEASE = SCALED.lease.total_seconds()
QUEUE = "bed"
# The faults come from outside: no number of them says anything against the job.
OFTEN = 60
# In megabytes, for a handler that takes more.
MEMORY_LIMIT = 100
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
_ENTER = "INSERT INTO ledger VALUES (%s, %s)"
_SOON = Backoff(base=0.1, cap=0.5)
_USUAL: dict[str, Any] = {
    "queue": QUEUE,
    "max_attempts": OFTEN,
    "max_losses": OFTEN,
    "backoff": _SOON,
}

app = Tenure(defaults=SCALED)
if os.environ.get("PROOF_BUG"):
    bugs.apply(os.environ["PROOF_BUG"])
_here = threading.local()


@cache
def _pen() -> Pen:
    return Pen(os.environ["PROOF_HISTORY"])


def _pause(seconds: float) -> None:
    """Under a false clock `time.sleep` does not work; this does."""
    threading.Event().wait(seconds)


def _harm(kind: str) -> None:
    _pen().write(HARM, f"{now():.6f}", "-", 0, "-", kind.replace(" ", "_"))


def _began(job: Job | AsyncJob) -> None:
    _pen().instant("began", job.id, job.fence)


def _returned(job: Job | AsyncJob) -> int:
    """The fence is the result: whose result it is shows in the result itself."""
    _pen().instant("returned", job.id, job.fence)
    return job.fence


def _opened(job: Job | AsyncJob) -> float:
    """Said before, as well: whoever dies in between leaves the answer open."""
    _pen().instant(OPENED, job.id, job.fence)
    return now()


def _committed(job: Job | AsyncJob, since: float, error: BaseException | None) -> None:
    answer = "ok" if error is None else "refused" if isinstance(error, LeaseLost) else "unknown"
    _pen().span("commit", since, job.id, job.fence, answer)
    if error is not None:
        _pen().instant("raised", job.id, job.fence)


@app.task(**_USUAL)
async def answer(job: AsyncJob, label: int, seconds: float) -> int:
    """Return a result, which the worker settles."""
    _began(job)
    if seconds:
        await asyncio.sleep(seconds)
    return _returned(job)


@app.task(**_USUAL)
def enter(job: Job, label: int, before: float, within: float) -> None:
    """Write one row of the ledger through the job's transaction, in a thread."""
    _began(job)
    _pause(before)
    since = _opened(job)
    try:
        with job.transaction() as connection:
            connection.execute(_ENTER, [job.id, job.fence])
            _pause(within)
    except BaseException as error:
        _committed(job, since, error)
        raise
    _committed(job, since, None)


@app.task(**_USUAL)
async def aenter(job: AsyncJob, label: int, before: float, within: float) -> None:
    """Write one row of the ledger through the job's transaction, on the loop."""
    _began(job)
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


@app.task(**_USUAL)
def touch(job: Job, label: int, times: int) -> int:
    """Leave effects outside the transaction, in a ledger on another server."""
    _began(job)
    for _ in range(times):
        _outside().execute("INSERT INTO effect VALUES (%s, %s)", [job.id, job.fence])
        _pen().instant("effect", job.id, job.fence)
        _pause(0.05)
    return _returned(job)


def _outside() -> "psycopg.Connection[Any]":
    if not hasattr(_here, "ledger"):
        _here.ledger = psycopg.connect(os.environ["PROOF_EFFECTS"], autocommit=True)
    ledger: psycopg.Connection[Any] = _here.ledger
    return ledger


@app.task(**_USUAL)
async def stumble(job: AsyncJob, label: int, failures: int, seconds: float = 0) -> int:
    """Fail some times, then return."""
    _began(job)
    if job.attempt <= failures:
        await asyncio.sleep(seconds)
        _pen().instant("raised", job.id, job.fence)
        raise RuntimeError("this was to be expected")
    return _returned(job)


@app.task(**_USUAL)
def report(job: Job, label: int, seconds: float) -> int:
    """Tell the progress again and again."""
    _began(job)
    until = now() + seconds
    try:
        while now() < until:
            job.progress(message="on it")
            _pause(0.1)
    except BaseException:
        _pen().instant("raised", job.id, job.fence)
        raise
    return _returned(job)


@app.task(**(_USUAL | {"max_attempts": 1}))
async def fall(job: AsyncJob, label: int) -> int:
    """Fail for good under the first token; return in the life that a retry gives it."""
    _began(job)
    if job.fence == job.fence >> 40 << 40:
        _pen().instant("raised", job.id, job.fence)
        raise RuntimeError("this was to be expected")
    return _returned(job)


@app.task(process=True, **_USUAL)
def apart(job: Job, label: int, seconds: float) -> int:
    """Run in a process of its own."""
    _began(job)
    _pause(seconds)
    return _returned(job)


@app.task(**_USUAL)
async def block(job: AsyncJob, label: int, seconds: float) -> int:
    """Block the event loop."""
    _began(job)
    _harm("loop blocked")
    _pause(seconds)
    return _returned(job)


@app.task(**_USUAL)
def hold(job: Job, label: int, seconds: float) -> int:
    """Hold the interpreter's lock the first time, so that nothing else in the process runs."""
    _began(job)
    if job.attempt == 1:
        _harm("interpreter's lock held")
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return _returned(job)


@app.task(timeout=1, **_USUAL)
def hang(job: Job, label: int) -> int:
    """Never end, the first time."""
    _began(job)
    if job.attempt == 1:
        _harm("never ends")
        _pen().instant("raised", job.id, job.fence)
        threading.Event().wait(60)
    return _returned(job)


@app.task(**_USUAL)
def die(job: Job, label: int, way: str) -> int:
    """End the whole process, the first time."""
    _began(job)
    if job.attempt == 1:
        _harm(way)
        if way == "exit":
            os._exit(1)
        if way == "segfault":
            ctypes.string_at(0)
        if way == "abort":
            os.abort()
        if way == "memory":
            _take_all_memory()
        os.kill(os.getpid(), signal.SIGKILL)
    return _returned(job)


def _take_all_memory() -> None:
    """In a group with a limit, whose processes the kernel kills when they pass it."""
    Path(os.environ["PROOF_MEMORY"], "cgroup.procs").write_text(str(os.getpid()))
    taken = [b"x" * 2**20 for _ in range(2 * MEMORY_LIMIT)]
    raise AssertionError(f"{len(taken)} MB were taken in spite of the limit")


ENTERING = (enter.name, aenter.name)
