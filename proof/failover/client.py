"""A client process: lanes that enqueue jobs with keys, and say in the book what they were told.

`python -m proof.failover.client NAME LANES DEADLINE`. Every second lane is sync. A
lane that gets no acknowledgement asks again with the same key until it has one. DEADLINE is how
long an async lane waits for an answer before it shuts the socket, in seconds; Tenure's own is
longer. SIGTERM: no new keys.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from proof.crash import jobs
from proof.failover.book import ACKNOWLEDGED, REFUSED, REQUESTED, UNKNOWN, Pen
from tenure.errors import OutcomeUnknown, StoreError

if TYPE_CHECKING:
    from tenure.handle import Handle
    from tenure.task import TaskCall

_KEY_FOR = timedelta(days=1)
_PAUSE = (0.05, 0.25)
_AGAIN_AFTER = 0.1
_SEE_THROUGH_WITHIN = 90.0


def call(key: str) -> tuple[TaskCall[..., Any], list[float]]:
    """The task and the arguments that belong to a key, always the same."""
    rng = Random(key)  # noqa: S311 - to be repeated
    if rng.random() < 0.3:
        return jobs.answer.using(key=key, key_for=_KEY_FOR), [rng.uniform(0, 0.1)]
    task = rng.choice((jobs.enter, jobs.aenter))
    return task.using(key=key, key_for=_KEY_FOR), [rng.uniform(0.01, 0.1), rng.uniform(0, 0.05)]


class Client:
    """Some lanes on one loop, in one process."""

    def __init__(self, name: str, lanes: int, deadline: float) -> None:
        self._name = name
        self._lanes = lanes
        self._deadline = deadline
        self._pen = Pen(os.environ["PROOF_BOOK"])
        self._stopping = asyncio.Event()
        self._threads = ThreadPoolExecutor(lanes)

    async def run(self) -> None:
        """Enqueue until told to stop; the last keys are seen through."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stopping.set)
        async with asyncio.TaskGroup() as group:
            for lane in range(self._lanes):
                group.create_task(self._run(f"{self._name}.{lane}", is_async=lane % 2 == 0))

    async def _run(self, lane: str, *, is_async: bool) -> None:
        rng = Random(lane)  # noqa: S311 - to be repeated
        number = 0
        while not self._stopping.is_set():
            number += 1
            await self._see_through(f"{lane}.{number}", is_async=is_async)
            await asyncio.sleep(rng.uniform(*_PAUSE))

    async def _see_through(self, key: str, *, is_async: bool) -> None:
        self._pen.write(REQUESTED, key)
        stopped_at = None
        while stopped_at is None or time.monotonic() < stopped_at + _SEE_THROUGH_WITHIN:
            try:
                handle = await self._ask(key, is_async=is_async)
            except (OutcomeUnknown, TimeoutError) as error:
                self._pen.write(UNKNOWN, key, type(error).__name__, error)
            except StoreError as error:
                self._pen.write(REFUSED, key, type(error).__name__, error)
            else:
                self._pen.write(ACKNOWLEDGED, key, handle.id)
                return
            await asyncio.sleep(_AGAIN_AFTER)
            if self._stopping.is_set() and stopped_at is None:
                stopped_at = time.monotonic()

    async def _ask(self, key: str, *, is_async: bool) -> Handle[Any]:
        request, arguments = call(key)
        if is_async:
            async with asyncio.timeout(self._deadline):
                return await request.aenqueue(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(request.enqueue, *arguments))


async def _main() -> None:
    await Client(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])).run()
    # Its book is closed. What connections and their threads still do is not on trial here.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main())
