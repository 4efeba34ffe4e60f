"""Tasks with leases of 9 s: the watch over a frozen child comes well before their deadlines."""

import asyncio
import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
import threading

from tenure import Tenure
from tenure.config import DEFAULTS
from tests.crash.handlers import effect

app = Tenure(defaults=DEFAULTS.scaled(0.3))
LEASE = app.defaults.lease.total_seconds()
TARGET = f"{__name__}:app"
_holding_the_gil = ctypes.PyDLL(None)
log = logging.getLogger("guarded")


@app.task(timeout=None)
async def nap(path: str, seconds: float) -> None:
    """Leave an effect, sleep on the loop, and leave another."""
    effect(path)
    await asyncio.sleep(seconds)
    effect(path)


@app.task(timeout=None)
def grip(path: str, seconds: float) -> None:
    """Keep the GIL in one call of C."""
    effect(path)
    _holding_the_gil.usleep(int(seconds * 1_000_000))
    effect(path)


@app.task(timeout=None)
def freeze(path: str) -> None:
    """Stop the process that runs it, as a debugger does."""
    effect(path)
    os.kill(os.getpid(), signal.SIGSTOP)


@app.task(timeout=None)
def loud(path: str, lines: int) -> None:
    """Log this many lines of a thousand characters."""
    for _ in range(lines):
        log.info("x" * 1000)
    effect(path)


@app.task(max_attempts=1)
async def fail() -> None:
    """Fail, which Tenure logs."""
    raise ValueError("as it must")


@app.task
def lock_up_logging(path: str) -> None:
    """Leave every lock of `logging` locked, as a handler that was stopped there can: the module's
    own, and those of its handlers."""
    own = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(own)
    locks = [handler.lock for handler in logging.getLogger().handlers] + [logging._lock]  # type: ignore[attr-defined]

    def take() -> None:
        for lock in locks:
            if lock is not None:
                lock.acquire()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    effect(path)


@app.task
def leave_programs(count: int) -> None:
    """Start programs that outlive the process which started them, and end soon after."""
    for _ in range(count):
        subprocess.run(["/bin/sh", "-c", "sleep 0.2 & exit 0"], check=True)


@app.task(max_attempts=1)
async def fork_on_loop(path: str, *, wait: bool) -> int:
    """Return twice: the copy comes back from the handler, or to the loop, as well."""
    copy = os.fork()
    if not copy:
        effect(path, "copy")
    if wait:
        await asyncio.sleep(0.1)
    return os.getpid()


@app.task(max_attempts=1)
def fork_in_thread(path: str) -> int:
    """The same in a thread."""
    copy = os.fork()
    if not copy:
        effect(path, "copy")
    return os.getpid()


@app.task
def take_descriptors() -> None:
    """Leave this process no descriptor to open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))


_kept: list[bytes] = []


@app.task
def keep_memory(size: int) -> int:
    """Leak this many bytes; return the process id."""
    _kept.append(b"x" * size)
    return os.getpid()


@app.task
async def tick(pause: float) -> int:
    """Answer with the process that ran it."""
    await asyncio.sleep(pause)
    return os.getpid()


@app.task(process=True, memory="200MiB", max_attempts=1)
def take_memory(size: int) -> int:
    """Take this many bytes, in a process with a memory limit."""
    return len(b"x" * size)
