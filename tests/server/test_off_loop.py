"""What costs processor time does not stop the event loop, which renews the leases of others."""

from __future__ import annotations

import asyncio
import threading

from tenure.server.off_loop import off_loop


async def test_work_leaves_the_event_loop_free() -> None:
    """Before, one list of hostile payloads kept the server from answering for seconds."""
    moved = threading.Event()
    asyncio.get_running_loop().call_later(0.01, moved.set)
    assert await off_loop(lambda: moved.wait(2)), "the event loop stood still"
