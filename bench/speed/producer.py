"""Enqueues `stamp` jobs at a pace, in a process of its own, and writes down what was acknowledged.

`batches RATE BATCH SECONDS LEASE LONG`: batches at this rate; one of a hundred
takes LONG seconds.
`callers RATE SECONDS SEED HELD PRIORITY`: Poisson arrivals, one by one; each inside a transaction
of up to HELD seconds, unless that is 0.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import sys
import time
from contextlib import ExitStack
from typing import Any

import psycopg

from bench.speed.counting import now
from bench.speed.ours import URL, app, stamp
from bench.speed.producing import SENT

CONNECTIONS, PROCESSES, LONG_ONES = 8, 3, 100
Connection = psycopg.Connection[Any]
FILE = os.open(os.environ["BENCH_SENT"], os.O_WRONLY | os.O_APPEND)


def batches(rate: float, batch: int, seconds: float, lease: float, long: float) -> None:
    task = stamp.using(lease=lease)
    began = time.monotonic()
    for first in range(0, int(rate * seconds), batch):
        time.sleep(max(0.0, began + first / rate - time.monotonic()))
        numbers = range(first, first + batch)
        at = now()
        handles = app.enqueue_many(task.bind(n, 0.0 if n % LONG_ONES else long) for n in numbers)
        end = now()
        lines = (SENT.pack(n, h.id, at, end) for n, h in zip(numbers, handles, strict=True))
        os.write(FILE, b"".join(lines))
    app.close()


def callers(rate: float, seconds: float, seed: int, held: float, priority: int) -> None:
    """Arrivals; transactions take several round trips each, so processes share them."""
    processes = PROCESSES if held else 1
    pids = []
    for place in range(1, processes):
        if pid := os.fork():
            pids.append(pid)
            continue
        _caller(rate / processes, seconds, f"{seed}/{place}", held, priority, (place, processes))
        os._exit(0)
    _caller(rate / processes, seconds, f"{seed}/0", held, priority, (0, processes))
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    assert not any(ends), "a process of the producer failed"


def _caller(
    rate: float, seconds: float, seed: str, held: float, priority: int, numbers: tuple[int, int]
) -> None:
    """One thread for all: threads and tasks would cost more than what is measured. A call that
    takes long holds up the next; each wait counts from its own call."""
    chance = random.Random(seed)  # noqa: S311 - arrivals, not secrets
    with ExitStack() as stack:
        free = [stack.enter_context(psycopg.connect(URL)) for _ in range(CONNECTIONS * bool(held))]
        begun: list[tuple[float, int, int, Connection]] = []  # Ordered by when each commits.
        began = at = time.monotonic()
        for number in itertools.count(*numbers):
            at += chance.expovariate(rate)
            if at > began + seconds:
                break
            _commit(begun, free, at)
            time.sleep(max(0.0, at - time.monotonic()))
            if not held:
                started = now()
                handle = stamp.using(priority=priority).enqueue(number)
                os.write(FILE, SENT.pack(number, handle.id, started, now()))
                continue
            while not free:
                _commit(begun, free, begun[0][0])
            connection = free.pop()
            handle = stamp.using(priority=priority, connection=connection).enqueue(number)
            due = time.monotonic() + chance.uniform(0, held)
            heapq.heappush(begun, (due, number, handle.id, connection))
        _commit(begun, free, time.monotonic() + held)
    app.close()


def _commit(
    begun: list[tuple[float, int, int, Connection]], free: list[Connection], until: float
) -> None:
    """Commit those that are due by then, each in its time."""
    while begun and begun[0][0] <= until:
        due, number, job, connection = heapq.heappop(begun)
        time.sleep(max(0.0, due - time.monotonic()))
        started = now()
        connection.commit()
        os.write(FILE, SENT.pack(number, job, started, now()))
        free.append(connection)


def main(way: str, *words: str) -> None:
    first, second, third, fourth, fifth = words
    if way == "batches":
        batches(float(first), int(second), float(third), float(fourth), float(fifth))
    else:
        callers(float(first), float(second), int(third), float(fourth), int(fifth))


if __name__ == "__main__":
    main(*sys.argv[1:])
