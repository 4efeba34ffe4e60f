"""A crowd of workers on one machine: `async with app.run()`, several on the event loop of each of a
few processes. All services and connections of these workers, without as many interpreters."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING

from support.processes import die_with_parent, wait_for
from tenure import Tenure
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.workers import Bed

app = Tenure(pool_size=2, defaults=DEFAULTS.scaled(float(os.environ.get("PROOF_SCALE", "1"))))
QUEUE = "default"
_PROCESSES = 2
_SELF = "from proof.crowd.hiring import be; be()"
_UP_WITHIN = 240.0
_PACE = 0.15
_ACTIVE = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"


@app.task(timeout=None)
async def sleeper(seconds: float) -> None:
    """Hold a slot and a lease for this long."""
    await asyncio.sleep(seconds)


def be() -> None:
    """Be some of the workers, until told to stop."""
    asyncio.run(_workers(*map(int, sys.argv[1:])))


async def _workers(first: int, count: int, slots: int) -> None:
    notified = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, notified.set)
    async with AsyncExitStack() as stack:
        for number in range(first, first + count):
            running = app.run(
                queues=[QUEUE], concurrency=slots, grace=1, name=f"crowd-{number}", schedules=False
            )
            await stack.enter_async_context(running)
            # All at once they would wait for each other's connections, and give up.
            await asyncio.sleep(_PACE)
        await notified.wait()


@contextmanager
def hired(bed: Bed, *, workers: int, slots: int, scale: float = 1.0) -> Iterator[None]:
    """Workers spread over the processes, and known to the registry; killed at the end, for
    they have done their part. `scale` is of every constant of the protocol."""
    share, rest = divmod(workers, _PROCESSES)
    counts = [share + (number < rest) for number in range(_PROCESSES)]
    with ExitStack() as stack:
        for number, count in enumerate(counts):
            words = sum(counts[:number]), count, slots
            process = stack.enter_context(_process(bed.url, words, scale))
            stack.callback(process.kill)
        if not wait_for(lambda: bed.count(_ACTIVE) == workers, _UP_WITHIN):
            raise RuntimeError(f"{bed.count(_ACTIVE)} of {workers} workers came up")
        yield


def _process(url: str, words: Sequence[int], scale: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - itself
        [sys.executable, "-c", _SELF, *map(str, words)],
        env={"TENURE_DATABASE_URL": url, "PROOF_SCALE": str(scale), "PATH": "/usr/bin"},
        preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - takes no lock
    )
