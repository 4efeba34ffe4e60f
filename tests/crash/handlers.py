"""The tasks of this suite, with leases of 3 s. Loaded by real workers, in their own processes.

A handler tells what it did by a line with the time in a file: nothing that a database, or
the worker around it, could take back.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

from tenure import AsyncJob, Backoff, Job, Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
LEASE = app.defaults.lease.total_seconds()
TARGET = f"{__name__}:app"
STEP = 0.02
# Called through PyDLL, a C function keeps the GIL.
_holding_the_gil = ctypes.PyDLL(None)


def effect(path: str, text: str = "") -> None:
    """Leave a line with the time in a file, whole and at once."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{time.time():.6f} {os.getpid()} {text}\n".encode())
    finally:
        os.close(file)


def _program(path: str) -> None:
    """Run a program that leaves effects for longer than any test looks."""
    line = f'for _ in $(seq 1000); do date +%s.%N >> "{path}"; sleep {STEP}; done'
    subprocess.run(["/bin/sh", "-c", line], check=True)


@app.task(timeout=None)
async def on_loop(path: str, seconds: float) -> None:
    """Leave effects from the event loop."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        effect(path)
        await asyncio.sleep(STEP)


@app.task(timeout=None)
def in_thread(path: str, seconds: float) -> None:
    """Leave effects from a thread."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        effect(path)
        time.sleep(STEP)


@app.task(timeout=None, process=True)
def in_process(path: str, seconds: float) -> None:
    """Leave effects from a process of its own."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        effect(path)
        time.sleep(STEP)


@app.task(timeout=None)
def deaf(path: str, seconds: float) -> None:
    """Leave effects from a thread that ignores exceptions raised into it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            effect(path)
            time.sleep(STEP)
        except BaseException:  # noqa: BLE001, S110 - that is what it is for
            pass


@app.task(timeout=None)
async def blocking(path: str, seconds: float) -> None:
    """Leave effects from the event loop and block it for good."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        effect(path)
        time.sleep(STEP)  # noqa: ASYNC251 - that is what it is for


@app.task(timeout=None)
def gripping(path: str, seconds: float, grip: float) -> None:
    """Leave effects between calls of C that keep the GIL for this long each."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        effect(path)
        _holding_the_gil.usleep(int(grip * 1_000_000))


@app.task(timeout=None, process=True)
def with_a_program(path: str) -> None:
    """Leave effects from a program that the handler's process waits for."""
    _program(path)


def _leave_a_daemon(path: str) -> None:
    """Fork into a session of its own what keeps all descriptors, and end this process."""
    if not os.fork():
        os.setsid()
        effect(path)
        time.sleep(60)
        os._exit(0)
    time.sleep(5 * STEP)
    os._exit(3)


@app.task(on_loss="fail")
def daemon_in_thread(path: str) -> None:
    """Take the child down, and leave a daemon."""
    _leave_a_daemon(path)


@app.task(on_loss="fail", process=True)
def daemon_in_process(path: str) -> None:
    """Take its own process down, and leave a daemon."""
    _leave_a_daemon(path)


def _passed_on() -> list[int]:
    """The descriptors that a program started here would get, but for the usual three."""
    found = []
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError):  # the one that the list was read by
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
    return found


@app.task
def passed_on() -> list[int]:
    """What a program that a child's handler starts would get."""
    return _passed_on()


@app.task(process=True)
def passed_on_by_a_process() -> list[int]:
    """What a program that a handler's own process starts would get."""
    return _passed_on()


@app.task(timeout=1, max_attempts=1)
async def late_on_loop(path: str) -> None:
    """Take too long on the loop."""
    while True:
        effect(path)
        await asyncio.sleep(STEP)


@app.task(timeout=1, max_attempts=1)
def late_in_thread(path: str) -> None:
    """Take too long in a thread."""
    while True:
        effect(path)
        time.sleep(STEP)


@app.task(timeout=1, max_attempts=1, process=True)
def late_in_process(path: str) -> None:
    """Take too long in a process of its own, deaf to what is raised into it."""
    while True:
        try:
            effect(path)
            time.sleep(STEP)
        except BaseException:  # noqa: BLE001, S110 - that is what it is for
            pass


@app.task(timeout=1, max_attempts=1)
def late_in_c(path: str) -> None:
    """Take too long in a single call of C, out of reach for what is raised into the thread."""
    effect(path, "before")
    time.sleep(60)
    effect(path, "after")


@app.task(timeout=1, max_attempts=2, backoff=Backoff(base=0.1))
def late_at_first(job: Job, path: str) -> None:
    """The same at the first attempt alone."""
    effect(path)
    if job.attempt == 1:
        time.sleep(60)


@app.task(timeout=1, max_attempts=1, process=True)
def late_with_a_program(path: str) -> None:
    """Take too long in a program that the handler's process waits for."""
    _program(path)


@app.task(timeout=2, max_attempts=1)
def deaf_and_late(path: str) -> None:
    """Take too long in a thread that ignores exceptions raised into it."""
    while True:
        try:
            effect(path)
            time.sleep(STEP)
        except BaseException:  # noqa: BLE001, S110 - that is what it is for
            pass


@app.task
async def brief(path: str) -> None:
    """Leave one effect."""
    effect(path)


@app.task
async def nap(path: str, seconds: float) -> None:
    """Sleep on the loop and leave one effect at the end."""
    await asyncio.sleep(seconds)
    effect(path)


@app.task
def doze(path: str, seconds: float) -> None:
    """Sleep in a thread and leave one effect at the end."""
    time.sleep(seconds)
    effect(path)


@app.task
def transact(job: Job, seconds: float) -> None:
    """Hold the job's own transaction open for this long."""
    with job.transaction() as connection:
        connection.execute("INSERT INTO ledger (job_id) VALUES (%s)", [job.id])
        time.sleep(seconds)


@app.task
async def transact_on_loop(job: AsyncJob, seconds: float) -> None:
    """The same on the loop."""
    async with job.transaction() as connection:
        await connection.execute("INSERT INTO ledger (job_id) VALUES (%s)", [job.id])
        await asyncio.sleep(seconds)


@app.task
def pill(path: str, way: str) -> None:
    """Take the process down."""
    effect(path)
    match way:
        case "exit":
            os._exit(3)
        case "exit well":
            os._exit(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case _:
            raise ValueError(way)


@app.task(max_attempts=1, process=True)
def huge_in_process(path: str, size: int) -> str:
    """Return more than any result may be, from a process of its own."""
    effect(path)
    return "x" * size


@app.task(max_attempts=1)
def huge_in_thread(path: str, size: int) -> str:
    """Return more than any result may be, from a thread."""
    effect(path)
    return "x" * size
