"""Tenure by the protocol of contenders: `python -m bench.speed.ours VERB …`.

BENCH_TASK  the task that fill and enqueue use: noop, noop_thread, noop_process, sleep
BENCH_SLOTS slots of each child
BENCH_PLAIN 1: without middleware and listener
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import psycopg

from bench.speed.counting import Count, Stamps, now
from support.store import install
from tenure import Tenure
from tenure.worker import main as work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure import AsyncJob, Job, JobEvent, Task

QUEUE = "bench"
# As many as peers take at once. A thread each is dear, and a process each dearer.
SLOTS = {"noop": 500, "noop_thread": 50, "noop_process": 2, "sleep": 1000, "stamp": 100}
URL = os.environ["BENCH_URL"]
TASK = os.environ.get("BENCH_TASK", "noop")
app = Tenure(URL)
count = Count()
stamps = Stamps()
seen = {"run": 0, "completed": 0}


@app.task(name="noop", queue=QUEUE)
async def noop() -> None:
    """Nothing, on the loop."""
    count.add(1)


@app.task(name="noop_thread", queue=QUEUE)
def noop_thread() -> None:
    """Nothing, in a thread."""
    count.add(1)


@app.task(name="noop_process", queue=QUEUE, process=True)
def noop_process() -> None:
    """Nothing, in a process of its own."""
    count.add(1)


@app.task(name="sleep", queue=QUEUE)
async def sleep() -> None:
    """Ten milliseconds of waiting."""
    await asyncio.sleep(0.010)
    count.add(1)


@app.task(name="stamp", queue=QUEUE)
async def stamp(number: int, seconds: float = 0.0) -> None:
    """Record when the first line of the handler ran, and take this long."""
    stamps.add(number)
    if seconds:
        await asyncio.sleep(seconds)


TASKS: dict[str, Task[[], None]] = {
    "noop": noop,
    "noop_thread": noop_thread,
    "noop_process": noop_process,
    "sleep": sleep,
}
if os.environ.get("BENCH_PLAIN") != "1":

    @app.middleware("run")
    def counted(job: Job | AsyncJob) -> Iterator[None]:
        seen["run"] += job.attempt
        yield

    @app.on("completed")
    def reported(event: JobEvent) -> None:
        seen["completed"] += event.attempt


def _fill(number: int) -> float:
    bound = TASKS[TASK].bind()
    began = time.perf_counter()
    app.enqueue_many(bound for _ in range(number))
    return time.perf_counter() - began


def _enqueue(number: int) -> float:
    """One by one through the pool. The first opens it, and is not timed."""
    task = TASKS[TASK]
    return _each(number, lambda _: task.enqueue())


def _enqueue_open(number: int) -> float:
    """One by one on a connection of the caller's, in autocommit as the bare insert is."""
    with psycopg.connect(URL, autocommit=True) as connection:
        task = TASKS[TASK].using(connection=connection)
        return _each(number, lambda _: task.enqueue())


def _enqueue_within(number: int) -> float:
    """One by one in callers' transactions that write a row of their own."""
    with psycopg.connect(URL) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, item text)")
        connection.commit()
        task = TASKS[TASK].using(connection=connection)

        def one(order: int) -> None:
            with connection.transaction():
                connection.execute("INSERT INTO orders VALUES (%s, 'a book')", [order])
                task.enqueue()

        return _each(number, one)


def _each(number: int, one: Callable[[int], object]) -> float:
    """Seconds that this takes `number` times, from all but the first."""
    one(0)
    began = time.perf_counter()
    for n in range(1, number):
        one(n)
    return (time.perf_counter() - began) * number / max(1, number - 1)


def _arrive(rate: float, seconds: float, seed: int) -> list[float]:
    chance = random.Random(seed)  # noqa: S311 - arrivals, not secrets
    noop.enqueue()  # opens the pool
    began = at = time.monotonic()
    sent: list[float] = []
    while (at := at + chance.expovariate(rate)) < began + seconds:
        time.sleep(max(0.0, at - time.monotonic()))
        sent.append(now())
        stamp.enqueue(len(sent) - 1)
    return sent


def main(verb: str, *args: str) -> int:
    enqueues = {
        "fill": _fill,
        "enqueue": _enqueue,
        "enqueue-open": _enqueue_open,
        "enqueue-within": _enqueue_within,
    }
    answer: dict[str, Any] = {}
    if verb == "work":
        slots = int(os.environ.get("BENCH_SLOTS") or SLOTS[TASK])
        return work("bench.speed.ours:app", concurrency=slots, processes=int(args[0]))
    if verb == "about":
        answer = {"name": "Tenure", "version": _version(), "mode": f"async, {SLOTS['noop']} slots"}
        answer["keeps"] = "archive and attempt rows"
    elif verb == "install":
        install(URL)
    elif verb == "arrive":
        answer = {"sent": _arrive(float(args[0]), float(args[1]), int(args[2]))}
    else:
        answer = {"seconds": enqueues[verb](int(args[0]))}
    app.close()
    print(json.dumps(answer))
    return 0


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - a worker has no use for it

    return version("tenure")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
