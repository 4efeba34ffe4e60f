"""`just prove crowd [--short]`: fifty workers of a hundred slots hold 5,000 running jobs of ten
seconds each for five minutes, with the lease as it is by default, and lose none.

The workers are `async with app.run(concurrency=100)`, several on the event loop of each of a few
processes: all services, links and keepers of fifty workers, without fifty times the interpreter.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proof.report import Report
from support.cluster import Cluster
from support.processes import die_with_parent
from support.store import install
from support.workers import Bed
from tenure import Tenure

if TYPE_CHECKING:
    from collections.abc import Iterator

app = Tenure(pool_size=2)
SLOTS = 100
SECONDS = 10.0
AHEAD = 2000
_SELF = "from proof.crowd import be; be()"


@app.task(timeout=None)
async def sleeper(seconds: float) -> None:
    """Hold a slot and a lease for so long."""
    await asyncio.sleep(seconds)


def be() -> None:
    """Be some of the workers, until told to stop."""
    asyncio.run(_workers(int(sys.argv[1]), int(sys.argv[2])))


async def _workers(first: int, count: int) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with AsyncExitStack() as stack:
        for number in range(first, first + count):
            running = app.run(concurrency=SLOTS, grace=1, name=f"crowd-{number}")
            await stack.enter_async_context(running)
        await told.wait()


class Crowd:
    """The workers, the backlog before them, and what is seen of them once a second."""

    def __init__(self, bed: Bed, workers: int) -> None:
        self._bed = bed
        self._workers = workers
        self.running: list[int] = []

    @property
    def places(self) -> int:
        """How many jobs can run at once."""
        return self._workers * SLOTS

    def feed(self) -> None:
        """Keep a backlog."""
        queued = self._bed.count("SELECT count(*) FROM tenure.job WHERE state = 'queued'")
        while queued < AHEAD:
            queued += len(self._bed.enqueue([sleeper.bind(SECONDS)] * 1000))

    def look(self) -> int:
        """How many jobs run."""
        return self._bed.count("SELECT count(*) FROM tenure.job WHERE state = 'running'")

    def hold(self, seconds: float) -> None:
        """Feed and look until so long after all places were taken for the first time."""
        until = time.monotonic() + 120
        while self.look() < self.places:
            self.feed()
            if time.monotonic() > until:
                raise AssertionError(f"{self.look()} of {self.places} places taken after 120 s")
            time.sleep(0.2)
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self.feed()
            self.running.append(self.look())
            time.sleep(max(0.0, began + len(self.running) - time.monotonic()))

    def tell(self, report: Report) -> None:
        """What was seen, and whether a lease was lost."""
        bed = self._bed
        active = [row for row in bed.workers() if row.state == "active"]
        endings = bed.endings()
        report.at_least("workers active on the registry", len(active), self._workers)
        report.note("running by the registry", sum(row.running for row in active))
        report.note("running by the second, fewest", min(self.running))
        report.at_least("running by the second, median", _median(self.running), self.places)
        report.note("seconds watched", len(self.running))
        report.note("jobs completed", endings.pop("completed", 0))
        renewals = "SELECT coalesce(sum(renewals), 0) FROM tenure.attempt"
        report.note("renewals of those", bed.count(renewals))
        report.at_most("attempts that ended in any other way", sum(endings.values()), 0)
        late = "SELECT count(*) FROM tenure.attempt WHERE late"
        report.at_most("results after the lease's end", bed.count(late), 0)
        losses = "SELECT count(*) FROM tenure.job WHERE losses > 0"
        report.at_most("live jobs with a loss", bed.count(losses), 0)


def _median(numbers: list[int]) -> int:
    return int(statistics.median(numbers))


@contextmanager
def _hired(url: str, workers: int, processes: int) -> Iterator[None]:
    """The workers, spread over the processes; killed at the end, for they have done their part."""
    share, rest = divmod(workers, processes)
    first = 0
    with ExitStack() as stack:
        for number in range(processes):
            count = share + (number < rest)
            process = stack.enter_context(
                subprocess.Popen(  # noqa: S603 - itself
                    [sys.executable, "-c", _SELF, str(first), str(count)],
                    env={"TENURE_DATABASE_URL": url, "PATH": "/usr/bin"},
                    preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - takes no lock
                )
            )
            stack.callback(process.kill)
            first += count
        yield


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove crowd", description=__doc__)
    parser.add_argument("--short", action="store_true", help="ten workers for twenty seconds")
    parser.add_argument("--workers", type=int, help="how many, instead of 50 or 10")
    parser.add_argument("--seconds", type=float, help="how long, instead of 300 or 20")
    parser.add_argument("--processes", type=int, default=2)
    said = parser.parse_args(argv)
    workers = said.workers or (10 if said.short else 50)
    seconds = said.seconds or (20 if said.short else 300)
    report = Report({"short": said.short, "workers": workers, "seconds": seconds})
    report.part("crowd")
    settings = {"max_connections": "600", "shared_buffers": "512MB"}
    with Cluster(15, settings) as cluster, tempfile.TemporaryDirectory() as directory:
        install(cluster.url())
        bed = Bed(cluster.url(), Path(directory))
        crowd = Crowd(bed, workers)
        crowd.feed()
        with _hired(cluster.url(), workers, said.processes):
            crowd.hold(seconds)
            crowd.tell(report)
        bed.close()
    report.close(Path(".cache/proof/crowd.json"))
    return 1 if report.missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
