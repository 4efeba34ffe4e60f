"""Run CPU-bound work off the event loop.

Redacting large payloads takes tens of milliseconds. On the event loop, that would delay other
callers' renewals. Two threads are enough, because more would only compete for the GIL.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_THREADS = ThreadPoolExecutor(2, "tenure-redact")


async def off_loop(work: Callable[[], T]) -> T:
    """Call `work` in one of the threads, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
