"""Chancy: its async executor, eager polling and a high concurrency."""

from __future__ import annotations

import asyncio
import logging
import os
import time

from chancy import Chancy, Job, Queue, Worker

from bench.peers import _common

CONCURRENCY = 1000


class Program:
    name = "Chancy"
    distribution = "chancy"
    mode = f"AsyncExecutor, concurrency={CONCURRENCY}, eager_polling, psycopg[binary], LISTEN"
    keeps = "the job's row"

    async def install(self) -> None:
        async with _chancy() as chancy:
            await chancy.migrate()
            await chancy.declare(
                Queue(
                    "bench",
                    concurrency=CONCURRENCY,
                    executor=Chancy.Executor.Async,
                    eager_polling=True,
                )
            )

    async def fill(self, jobs: int) -> float:
        async with _chancy() as chancy:
            began = time.perf_counter()
            async for _ in chancy.push_many([NOOP] * jobs):
                pass
            return time.perf_counter() - began

    async def enqueue(self, jobs: int) -> float:
        async with _chancy() as chancy:
            return await _common.one_by_one(jobs, lambda: chancy.push(NOOP))

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        async with _chancy() as chancy:
            return await _common.arrive(
                rate,
                seconds,
                seed,
                lambda number: chancy.push(STAMP.with_kwargs(number=number)),
            )

    def work(self, children: int) -> None:
        _common.in_processes(children, lambda: asyncio.run(_work()))


async def noop() -> None:
    _common.count()


async def stamp(*, number: int) -> None:
    _common.stamp(number)


NOOP = Job(func="bench.peers.chancy.noop", queue="bench")
STAMP = Job(func="bench.peers.chancy.stamp", queue="bench")


def _chancy() -> Chancy:
    log = logging.getLogger("chancy")
    log.setLevel(logging.WARNING)
    return Chancy(os.environ["BENCH_URL"], log=log)


async def _work() -> None:
    async with _chancy() as chancy, Worker(chancy, shutdown_timeout=5) as worker:
        await worker.wait_for_shutdown()


if __name__ == "__main__":
    _common.main(Program())
