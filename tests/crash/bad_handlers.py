"""Handlers that harm the process they run in, and tasks that run next to them. Leases of 3 s."""

import asyncio
import ctypes
import os
import sys
import threading
import time

from tenure import Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
TARGET = f"{__name__}:app"


@app.task(max_attempts=1)
async def stop_loop() -> None:
    """Stop the event loop."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(5)


@app.task(max_attempts=1)
async def cancel_all() -> None:
    """Cancel every task of the event loop, as code that shuts a program down does."""
    for task in asyncio.all_tasks():
        task.cancel()


@app.task(max_attempts=1)
async def exit_in_callback() -> None:
    """Raise SystemExit outside of any task."""
    asyncio.get_running_loop().call_soon(sys.exit, 3)
    await asyncio.sleep(5)


@app.task(max_attempts=1)
def close_descriptors() -> None:
    """Close what belongs to others, as code that makes itself a daemon does."""
    os.closerange(3, 256)
    time.sleep(5)


@app.task(max_attempts=1)
def end_service_thread() -> None:
    """Raise SystemExit into the thread that renews leases."""
    for thread in threading.enumerate():
        if thread.name == "tenure-service":
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
            )


@app.task(max_attempts=1)
async def shut_executor() -> None:
    """Shut down the executor that the event loop looks up names by."""
    await asyncio.get_running_loop().shutdown_default_executor()


@app.task(max_attempts=1)
def change_surroundings() -> None:
    """Change the directory and the environment of the process."""
    os.chdir("/")
    os.environ.clear()


@app.task(max_attempts=1)
async def huge_error() -> None:
    """Raise an error of 5 MB."""
    raise ValueError("x" * 5_000_000)


@app.task(max_attempts=1, timeout=None)
async def deaf(seconds: float) -> None:
    """Sleep on the event loop, deaf to cancels."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@app.task(max_attempts=1)
async def nap() -> None:
    """Sleep on the event loop."""
    await asyncio.sleep(0.5)


@app.task(max_attempts=1)
def doze() -> None:
    """Sleep in a thread."""
    time.sleep(0.5)


@app.task(max_attempts=1, process=True)
def work_apart() -> None:
    """Run in a process of its own."""
