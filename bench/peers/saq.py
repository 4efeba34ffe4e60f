"""SAQ on PostgreSQL, at the concurrency at which it ran fastest here."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

from saq import Queue, Worker

from bench.peers import _common

CONCURRENCY = 50


class Program:
    name = "SAQ"
    distribution = "saq"
    mode = f"PostgreSQL, async functions, concurrency={CONCURRENCY}, psycopg[binary], LISTEN"
    keeps = "the job's row, for ten minutes"

    async def install(self) -> None:
        queue = await _connected()
        await queue.disconnect()

    async def fill(self, jobs: int) -> float:
        """It has no bulk verb: as many calls at once as its pool has connections."""
        queue = await _connected()
        began = time.perf_counter()
        for rest in range(jobs, 0, -1000):
            await asyncio.gather(*[queue.enqueue("noop") for _ in range(min(rest, 1000))])
        seconds = time.perf_counter() - began
        await queue.disconnect()
        return seconds

    async def enqueue(self, jobs: int) -> float:
        queue = await _connected()
        seconds = await _common.one_by_one(jobs, lambda: queue.enqueue("noop"))
        await queue.disconnect()
        return seconds

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        queue = await _connected()
        sent = await _common.arrive(
            rate, seconds, seed, lambda number: queue.enqueue("stamp", number=number)
        )
        await queue.disconnect()
        return sent

    def work(self, children: int) -> None:
        _common.in_processes(children, lambda: asyncio.run(_work()))


async def noop(_context: dict[str, Any]) -> None:
    _common.count()


async def stamp(_context: dict[str, Any], *, number: int) -> None:
    _common.stamp(number)


async def _connected() -> Queue:
    logging.getLogger("saq").setLevel(logging.WARNING)
    queue = Queue.from_url(os.environ["BENCH_URL"])
    await queue.connect()
    return queue


async def _work() -> None:
    queue = await _connected()
    await Worker(queue, functions=[noop, stamp], concurrency=CONCURRENCY).start()


if __name__ == "__main__":
    _common.main(Program())
