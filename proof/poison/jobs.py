"""Innocents that are brief, and pills that kill their process. Caps are the default ones."""

import asyncio
import ctypes
import os
import resource
import signal
import time

from proof.crash.jobs import PRIORITY, QUEUE, SCALED, say
from tenure import AsyncJob, Job, Tenure

app = Tenure(defaults=SCALED)
TARGET = f"{__name__}:app"
OUT_OF_MEMORY = "memory"
WAYS = ("exit", "kill", "segfault", "abort", OUT_OF_MEMORY)
_PIECE = 64 * 2**20


@app.task(queue=QUEUE, priority=PRIORITY)
async def nap(seconds: float) -> None:
    """An innocent on the loop."""
    await asyncio.sleep(seconds)


@app.task(queue=QUEUE, priority=PRIORITY)
def doze(seconds: float) -> None:
    """An innocent in a thread."""
    time.sleep(seconds)


@app.task(queue=QUEUE, priority=PRIORITY)
def pill(job: Job, way: str) -> None:
    """Take the process down."""
    say("begun", job)
    _die(way)


@app.task(queue=QUEUE, priority=PRIORITY)
async def pill_on_loop(job: AsyncJob, way: str) -> None:
    """The same on the loop."""
    say("begun", job)
    _die(way)


def _die(way: str) -> None:
    # A core dump would only fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    match way:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "memory":
            hoard = []
            while True:
                hoard.append(b"x" * _PIECE)
        case _:
            raise ValueError(way)
