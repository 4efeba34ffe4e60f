"""A program with a worker inside (`app.run()`): no parent, restarted by a service manager."""

from __future__ import annotations

import asyncio
import signal
import sys

from tenure.worker.loader import load

# As proof.crash.fleet starts it.
WORK = "from proof.justice.program import be; be()"


def be() -> None:
    """Be that program, until SIGTERM."""
    asyncio.run(_work())


async def _work() -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    app = load(sys.argv[4])
    async with app.run(concurrency=int(sys.argv[1]), grace=1, name=sys.argv[3]):
        await over.wait()
