"""Procrastinate: async tasks at the concurrency at which it ran fastest here."""

from __future__ import annotations

import os
import time

from procrastinate import App, PsycopgConnector

from bench.peers import _common

CONCURRENCY = 20


class Program:
    name = "Procrastinate"
    distribution = "procrastinate"
    mode = f"async tasks, concurrency={CONCURRENCY}, psycopg[binary] pool, LISTEN, jobs kept"
    keeps = "the job's row and three event rows"

    async def install(self) -> None:
        async with _app.open_async():
            await _app.schema_manager.apply_schema_async()

    async def fill(self, jobs: int) -> float:
        async with _app.open_async():
            began = time.perf_counter()
            for rest in range(jobs, 0, -1000):
                await _noop.batch_defer_async(*[{} for _ in range(min(rest, 1000))])
            return time.perf_counter() - began

    async def enqueue(self, jobs: int) -> float:
        async with _app.open_async():
            return await _common.one_by_one(jobs, _noop.defer_async)

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        async with _app.open_async():
            return await _common.arrive(
                rate, seconds, seed, lambda number: _stamp.defer_async(number=number)
            )

    def work(self, children: int) -> None:
        _common.in_processes(children, lambda: _app.run_worker(concurrency=CONCURRENCY))


async def noop() -> None:
    _common.count()


async def stamp(number: int) -> None:
    _common.stamp(number)


_app = App(
    connector=PsycopgConnector(
        conninfo=os.environ.get("BENCH_URL", ""), min_size=1, max_size=CONCURRENCY
    )
)
_noop = _app.task(name="noop")(noop)
_stamp = _app.task(name="stamp")(stamp)


if __name__ == "__main__":
    _common.main(Program())
