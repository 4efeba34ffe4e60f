"""The app that the workers run. Each handler writes marks to the ledger; the lease is scaled."""

import asyncio
import ctypes
import os
import resource
import signal
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import proof.justice.bug  # noqa: F401 - before what it changes
from proof.justice.ledger import BEAT, DYING, END, FAILED, START, Pen
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS, Backoff

LEASE = float(os.environ.get("PROOF_LEASE", "3"))
SCALED = replace(
    DEFAULTS.scaled(LEASE / DEFAULTS.lease.total_seconds()), backoff=Backoff(base=0.05, cap=0.1)
)
QUEUE = "justice"
TARGET = f"{__name__}:app"
STEP = 0.1

app = Tenure(defaults=SCALED, imports=["proof.justice.chatter", "proof.justice.careful"])


# As much as a large program keeps in every process that loads it.
_BALLAST = bytearray(os.urandom(1) * (int(os.environ.get("PROOF_BALLAST", "0")) << 20))


class OwnFailure(Exception):
    """The handler's own doing: this attempt is spent rightly."""


@cache
def _pen() -> Pen:
    return Pen(os.environ["PROOF_LEDGER"])


def mark(kind: str, job: Job | AsyncJob) -> None:
    """Write one mark for this job."""
    _pen().write(kind, job.id, job.fence, job.attempt)


def _begin(job: Job | AsyncJob, fails: int) -> None:
    mark(START, job)
    if job.attempt <= fails:
        mark(FAILED, job)
        raise OwnFailure(f"attempt {job.attempt} of {fails} that fail")


def _seconds(job: Job | AsyncJob, seconds: float, fails: int, brief: float | None) -> float:
    """One that was interrupted takes `brief` seconds next time, if that is given."""
    # A fence counts the job's running periods from 0, above an installation's own number.
    interrupted = job.fence % 2**40 > fails
    return seconds if brief is None or not interrupted else brief


def _sleep(job: Job, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(STEP)
        mark(BEAT, job)


@app.task(name="nap", queue=QUEUE, timeout=None)
async def nap(job: AsyncJob, seconds: float, fails: int = 0, brief: float | None = None) -> None:
    """An innocent on the event loop; its first attempts fail by themselves."""
    _begin(job, fails)
    until = time.monotonic() + _seconds(job, seconds, fails, brief)
    while time.monotonic() < until:
        await asyncio.sleep(STEP)
        mark(BEAT, job)
    mark(END, job)


@app.task(name="doze", queue=QUEUE, timeout=None)
def doze(job: Job, seconds: float, fails: int = 0, brief: float | None = None) -> None:
    """An innocent in a thread."""
    _begin(job, fails)
    _sleep(job, _seconds(job, seconds, fails, brief))
    mark(END, job)


@app.task(name="toil", queue=QUEUE, timeout=None, process=True)
def toil(job: Job, seconds: float, fails: int = 0, brief: float | None = None) -> None:
    """An innocent in a process of its own."""
    _begin(job, fails)
    _sleep(job, _seconds(job, seconds, fails, brief))
    mark(END, job)


@app.task(name="block", queue=QUEUE, timeout=None)
async def block(job: AsyncJob, after: float, seconds: float) -> None:
    """Block the event loop after a while; in everything but that it is innocent."""
    mark(START, job)
    await asyncio.sleep(after)
    mark(BEAT, job)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    mark(END, job)


@app.task(name="export", queue=QUEUE, timeout=None)
def export(job: Job, steps: int, pause: float) -> None:
    """A long innocent that moves its cursor, and continues from there."""
    mark(START, job)
    for step in range(job.cursor or 0, steps):
        time.sleep(pause)
        job.progress(cursor=step + 1, done=step + 1)
        mark(BEAT, job)
    mark(END, job)


@app.task(name="crash_on_loop", queue=QUEUE, timeout=None)
async def crash_on_loop(job: AsyncJob, way: str, after: float) -> None:
    """A pill on the event loop. By `late` it dies once the handler has returned, before the worker
    can settle that."""
    mark(START, job)
    await asyncio.sleep(after)
    if way == "late":
        asyncio.get_running_loop().call_soon(_die, job, "exit")
        return
    _die(job, way)


@app.task(name="crash_in_thread", queue=QUEUE, timeout=None)
def crash_in_thread(job: Job, way: str, after: float) -> None:
    """A pill in a thread."""
    _crash(job, way, after)


@app.task(name="crash_in_process", queue=QUEUE, timeout=None, process=True)
def crash_in_process(job: Job, way: str, after: float) -> None:
    """A pill in a process of its own."""
    _crash(job, way, after)


@app.task(name="crash_worker", queue=QUEUE, timeout=None, max_attempts=20)
def crash_worker(job: Job, after: float, steps: bool = False) -> None:
    """A pill that takes the whole worker down, its parent included; if told to, it moves its
    cursor first."""
    mark(START, job)
    if steps:
        job.progress(cursor=(job.cursor or 0) + 1, done=(job.cursor or 0) + 1)
    time.sleep(after)
    mark(DYING, job)
    for pid in ancestors():
        os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _crash(job: Job, way: str, after: float) -> None:
    mark(START, job)
    time.sleep(after)
    _die(job, way)


def _die(job: Job | AsyncJob, way: str) -> None:
    # A core file would be of no use.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mark(DYING, job)
    match way:
        case "exit":
            os._exit(1)
        case "segfault":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "abort":
            os.abort()
        case _:
            raise ValueError(way)


def ancestors() -> list[int]:
    """The processes above this one up to the worker's parent, that one first."""
    suite, pids, pid = int(os.environ["PROOF_SUITE"]), list[int](), os.getppid()
    while pid not in (suite, 1, 0):
        pids.insert(0, pid)
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return pids
