"""What the programs of the Python peers share: the verbs, counting, stamping, arrivals.

It runs in the peers' environments, so it stands on the standard library alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import mmap
import os
import random
import signal
import struct
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from typing import Any

_PR_SET_PDEATHSIG = 1


class _Counter:
    """This process' count of finished no-op handlers, in a file that others read."""

    def __init__(self) -> None:
        self._done = 0
        with (Path(os.environ["BENCH_COUNTS"]) / str(os.getpid())).open("w+b") as file:
            file.write(bytes(8))
            file.flush()
            self._memory = mmap.mmap(file.fileno(), 8)

    def add(self, jobs: int) -> None:
        self._done += jobs
        struct.pack_into("<q", self._memory, 0, self._done)


_counter: _Counter | None = None
_stamps: int | None = None
_counting = threading.Lock()  # Some peers' handlers run in threads.


def count(jobs: int = 1) -> None:
    """Count finished handlers; the file is made by the process that first finishes one."""
    global _counter  # noqa: PLW0603 - one per process
    with _counting:
        if _counter is None:
            _counter = _Counter()
        _counter.add(jobs)


def stamp(number: int) -> None:
    """Write down when the handler of this job began."""
    global _stamps  # noqa: PLW0603 - one per process
    now = time.clock_gettime(time.CLOCK_REALTIME)
    if _stamps is None:
        _stamps = os.open(os.environ["BENCH_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_stamps, struct.pack("=qd", number, now))


async def one_by_one(jobs: int, send: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds that this many calls took, one after the other."""
    began = time.perf_counter()
    for _ in range(jobs):
        await send()
    return time.perf_counter() - began


async def arrive(
    rate: float, seconds: float, seed: int, send: Callable[[int], Awaitable[object]]
) -> list[float]:
    """Send numbered jobs at Poisson arrivals; return when each call began."""
    sent = []
    began = time.monotonic()
    for number, offset in enumerate(_offsets(rate, seconds, seed)):
        await asyncio.sleep(max(0.0, began + offset - time.monotonic()))
        sent.append(time.clock_gettime(time.CLOCK_REALTIME))
        await send(number)
    return sent


def _offsets(rate: float, seconds: float, seed: int) -> Iterator[float]:
    chance = random.Random(seed)  # noqa: S311 - the same arrivals each time are the point
    at = chance.expovariate(rate)
    while at < seconds:
        yield at
        at += chance.expovariate(rate)


class Program(Protocol):
    """A peer: the verbs of the protocol, as `bench/README.md` tells them."""

    name: str
    distribution: str
    mode: str
    keeps: str

    async def install(self) -> None: ...

    async def fill(self, jobs: int) -> float: ...

    async def enqueue(self, jobs: int) -> float: ...

    async def arrive(self, rate: float, seconds: float, seed: int) -> list[float] | None:
        """When each call began; None from a peer that does not take part."""
        ...

    def work(self, children: int) -> None: ...


def main(program: Program, run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run) -> None:
    """Do what the command line asks for, and print the answer as JSON."""
    match sys.argv[1:]:
        case ["about"]:
            found = version(program.distribution)
            about = {"name": program.name, "version": found, "mode": program.mode}
            print(json.dumps(about | {"keeps": program.keeps}))
        case ["install"]:
            run(program.install())
            print("{}")
        case ["fill", jobs]:
            print(json.dumps({"seconds": run(program.fill(int(jobs)))}))
        case ["enqueue", jobs]:
            print(json.dumps({"seconds": run(program.enqueue(int(jobs)))}))
        case ["arrive", rate, seconds, seed]:
            sent = run(program.arrive(float(rate), float(seconds), int(seed)))
            missing = {"unsupported": "its latency is not measured"}
            print(json.dumps(missing if sent is None else {"sent": sent}))
        case ["work", children]:
            program.work(int(children))
        case _:
            sys.exit("about | install | fill N | enqueue N | arrive RATE SECONDS SEED | work N")


def in_processes(children: int, work: Callable[[], None]) -> None:
    """Run `work` in this process, or in this many child processes, until SIGTERM."""
    if children == 1:
        work()
        return
    pids = [_fork(work) for _ in range(children)]

    def end(*_: object) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    for pid in pids:
        os.waitpid(pid, 0)


def _fork(work: Callable[[], None]) -> int:
    parent = os.getpid()
    if pid := os.fork():
        return pid
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == parent:
        work()
    os._exit(0)
