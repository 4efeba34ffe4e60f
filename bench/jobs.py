"""The app that workers under measurement run: jobs that do nothing but say when they began."""

from __future__ import annotations

import os
import struct
import time

from tenure import Tenure

QUEUE = "bench"
STAMP = struct.Struct("=qd")
app = Tenure(listen=os.environ.get("BENCH_LISTEN", "1") == "1")
_file = os.environ.get("BENCH_STAMPS")
_stamps = os.open(_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if _file else -1


@app.task(name="noop", queue=QUEUE)
async def noop() -> None:
    """Nothing, on the loop."""


@app.task(name="noop_thread", queue=QUEUE)
def noop_thread() -> None:
    """Nothing, in a thread."""


@app.task(name="stamp", queue=QUEUE)
async def stamp(number: int) -> None:
    """Say when the first line of the handler ran."""
    os.write(_stamps, STAMP.pack(number, time.clock_gettime(time.CLOCK_REALTIME)))
