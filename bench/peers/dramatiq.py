"""Dramatiq on Redis, by its command line, with threads."""

from __future__ import annotations

import os
import sys
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers import _common

THREADS = 8
PREFETCH = 1000


class Program:
    name = "Dramatiq"
    distribution = "dramatiq"
    mode = f"Redis, threads={THREADS} a process, queue_prefetch={PREFETCH}, no results"
    keeps = "nothing"

    async def install(self) -> None:
        _broker.client.flushdb()

    async def fill(self, jobs: int) -> float:
        """It has no bulk verb: a group sends its messages one after the other."""
        began = time.perf_counter()
        dramatiq.group([_noop.message() for _ in range(jobs)]).run()
        return time.perf_counter() - began

    async def enqueue(self, jobs: int) -> float:
        began = time.perf_counter()
        for _ in range(jobs):
            _noop.send()
        return time.perf_counter() - began

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float]:
        async def send(number: int) -> None:
            _stamp.send(number)

        return await _common.arrive(rate, seconds, seed, send)

    def work(self, children: int) -> None:
        words = ["-m", "dramatiq", "bench.peers.dramatiq", "--processes", str(children)]
        words += ["--threads", str(THREADS), "--skip-logging"]
        os.environ["dramatiq_queue_prefetch"] = str(PREFETCH)  # noqa: SIM112 - its own spelling
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - its own command line


def noop() -> None:
    _common.count()


def stamp(number: int) -> None:
    _common.stamp(number)


_broker = RedisBroker(url=os.environ.get("BENCH_URL"))
dramatiq.set_broker(_broker)
_noop = dramatiq.actor(noop)
_stamp = dramatiq.actor(stamp)


if __name__ == "__main__":
    _common.main(Program())
