"""Jobs on their way through a worker: how fast, and what each took of processors."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.speed import meters
from bench.workers import until

if TYPE_CHECKING:
    from bench.speed.contender import Running

_WITHIN = 300.0


@dataclass(frozen=True)
class Passed:
    """A number of jobs, the seconds they took, and their processor time."""

    jobs: int
    seconds: float
    database_us: float
    worker_us: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds

    @property
    def busy_us(self) -> float:
        """Processor time of both per job."""
        return self.database_us + self.worker_us

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f} jobs/s; per job {self.database_us:.0f} µs of the database and "
            f"{self.worker_us:.0f} of the worker"
        )


def passed(running: Running, jobs: int) -> Passed:
    """Wait until this many more are counted, from the first one on."""
    place = running.place
    before = place.count()
    until(lambda: place.count() > before, 60)
    began, reading = time.monotonic(), meters.read(place, running.pid)
    first = place.count()
    until(lambda: place.count() >= before + jobs, _WITHIN)
    running.check()
    took, cost = time.monotonic() - began, meters.read(place, running.pid) - reading
    done = place.count() - first
    per = cost.per(done)
    return Passed(done, took, per["database_us"], per["worker_us"])
