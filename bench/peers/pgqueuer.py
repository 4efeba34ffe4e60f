"""PgQueuer: batches, asyncpg and uvloop, as in its own benchmark."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job  # noqa: TC002 - PgQueuer reads handlers' annotations
from pgqueuer.queries import Queries

from bench.peers import _common

BATCH = 500


class Program:
    name = "PgQueuer"
    distribution = "pgqueuer"
    mode = f"async handlers, batch_size={BATCH}, asyncpg, uvloop, LISTEN, its autovacuum settings"
    keeps = "three log rows; the job's row is deleted"

    async def install(self) -> None:
        queries = await _queries()
        await queries.install()
        await queries.optimize_autovacuum()

    async def fill(self, jobs: int) -> float:
        queries = await _queries()
        began = time.perf_counter()
        await queries.enqueue(["noop"] * jobs, [None] * jobs, [0] * jobs)
        return time.perf_counter() - began

    async def enqueue(self, jobs: int) -> float:
        queries = await _queries()
        return await _common.one_by_one(jobs, lambda: queries.enqueue("noop", None))

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        queries = await _queries()
        return await _common.arrive(
            rate, seconds, seed, lambda number: queries.enqueue("stamp", str(number).encode())
        )

    def work(self, children: int) -> None:
        _common.in_processes(children, lambda: uvloop.run(_work()))


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(os.environ["BENCH_URL"], timeout=10)))


async def _work() -> None:
    application = PgQueuer((await _queries()).driver)

    async def noop(_job: Job) -> None:
        _common.count()

    async def stamp(job: Job) -> None:
        _common.stamp(int(job.payload))

    application.entrypoint("noop")(noop)
    application.entrypoint("stamp")(stamp)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, application.shutdown.set)
    await application.run(batch_size=BATCH)


if __name__ == "__main__":
    _common.main(Program(), run=uvloop.run)
