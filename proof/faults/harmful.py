"""Jobs that are a fault in themselves, the first time they run. Workers load the app from here."""
# ruff: noqa: ARG001 - the label is read by the proof, not by the handler

import ctypes
import os
import signal
import threading
from pathlib import Path

from proof.faults.history import HARM, now
from proof.faults.jobs import USUAL, app, began, first, pause, pen, returned
from tenure import AsyncJob, Job

# In megabytes, for a handler that takes more; and for a handler that fills what there is.
MEMORY_LIMIT = 100
DISK = 16
# For a handler that starts more.
PROCESS_LIMIT = 40
# In which a process ends.
WAYS = ("exit", "segfault", "abort", "kill", "memory")


def _harm(kind: str) -> None:
    pen().write(HARM, f"{now():.6f}", "-", 0, "-", kind.replace(" ", "_"))


@app.task(**USUAL)
async def block(job: AsyncJob, label: int, seconds: float) -> int:
    """Block the event loop."""
    began(job)
    _harm("loop blocked")
    pause(seconds)
    return returned(job)


@app.task(**USUAL)
def hold(job: Job, label: int, seconds: float) -> int:
    """Hold the interpreter's lock the first time, so that nothing else in the process runs."""
    began(job)
    if first(job):
        _harm("interpreter's lock held")
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return returned(job)


@app.task(timeout=1, **USUAL)
def hang(job: Job, label: int) -> int:
    """Never end, the first time."""
    began(job)
    if first(job):
        _harm("never ends")
        pen().instant("raised", job.id, job.fence)
        threading.Event().wait(60)
    return returned(job)


@app.task(**USUAL)
def die(job: Job, label: int, way: str) -> int:
    """End the whole process, the first time."""
    began(job)
    if first(job):
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
    return returned(job)


def _take_all_memory() -> None:
    """In a group with a limit, whose processes the kernel kills when they pass it."""
    Path(os.environ["PROOF_MEMORY"], "cgroup.procs").write_text(str(os.getpid()))
    taken = [b"x" * 2**20 for _ in range(2 * MEMORY_LIMIT)]
    raise AssertionError(f"{len(taken)} MB were taken in spite of the limit")


@app.task(process=True, timeout=1, **USUAL)
def breed(job: Job, label: int) -> int:
    """Start processes that start processes, until the kernel allows no more, and never end."""
    began(job)
    if first(job):
        _harm("fork bomb")
        pen().instant("raised", job.id, job.fence)
        Path(os.environ["PROOF_PROCESSES"], "cgroup.procs").write_text(str(os.getpid()))
        while True:
            try:
                os.fork()
            except BlockingIOError:
                pause(0.05)
    return returned(job)


@app.task(process=True, **USUAL)
def fill(job: Job, label: int) -> int:
    """Fill the disk where the worker has its files, for a while."""
    began(job)
    path = Path(os.environ["PROOF_DISK"], str(job.id))
    if first(job):
        _harm("disk full")
        pen().instant("raised", job.id, job.fence)
        try:
            with path.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 2**16)
        finally:
            pause(1)
            path.unlink()
    path.unlink(missing_ok=True)
    return returned(job)
