"""Celery on Redis, with the pool and the prefetching of its own benchmark."""

from __future__ import annotations

import os
import sys
import time

from celery import Celery

from bench.peers import _common

POOL = "solo"
PREFETCH = 0


class Program:
    name = "Celery"
    distribution = "celery"
    mode = f"Redis, pool={POOL}, prefetch_multiplier={PREFETCH} (no bound), no results, early ack"
    keeps = "nothing"

    async def install(self) -> None:
        with _app.connection_for_write() as connection:
            connection.default_channel.client.flushdb()

    async def fill(self, jobs: int) -> float:
        with _app.producer_or_acquire() as producer:
            began = time.perf_counter()
            for _ in range(jobs):
                _noop.apply_async(producer=producer)
            return time.perf_counter() - began

    async def enqueue(self, jobs: int) -> float:
        began = time.perf_counter()
        for _ in range(jobs):
            _noop.delay()
        return time.perf_counter() - began

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        async def send(number: int) -> None:
            _stamp.delay(number)

        return await _common.arrive(rate, seconds, seed, send)

    def work(self, children: int) -> None:
        _common.in_processes(children, _work)


def noop() -> None:
    _common.count()


def stamp(number: int) -> None:
    _common.stamp(number)


_app = Celery("bench", broker=os.environ.get("BENCH_URL"))
_app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=PREFETCH,
    broker_connection_retry_on_startup=True,
)
_noop = _app.task(name="noop")(noop)
_stamp = _app.task(name="stamp")(stamp)


def _work() -> None:
    words = ["-m", "celery", "-A", "bench.peers.celery:_app", "worker", "--pool", POOL]
    words += ["--loglevel", "CRITICAL", "--hostname", f"bench{os.getpid()}@%h"]
    words += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - its own command line


if __name__ == "__main__":
    _common.main(Program())
