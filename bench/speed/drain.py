"""One round of working off jobs that do nothing: how fast, and what it costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from bench.speed import meters
from bench.workers import until

if TYPE_CHECKING:
    from bench.server import Server
    from bench.speed.contender import Keeping
    from bench.speed.field import Entry

PROBE, LONG_ENOUGH = 500, 0.5
SECONDS = 5.0
FEWEST, MOST = 500, 400_000
_SETTLED_WITHIN = 30.0
_IN_FLIGHT = 0.3


@dataclass(frozen=True)
class Round:
    """Jobs per second from a tenth of the jobs to the last of them, and the cost of a job."""

    rate: float
    database_us: float
    worker_us: float
    wal_bytes: float
    commits: float
    fill_rate: float
    seconds: float


def drain(entry: Entry, server: Server, redis: Keeping | None, jobs: int) -> Round:
    """Fill, start a worker, and watch its counts; the database is asked nothing meanwhile."""
    contender = entry.contender
    with contender.place(server, redis) as place:
        filled = contender.call(place, "fill", jobs)["seconds"]
        _settle_down(place.url, relational=not contender.redis)
        commits = meters.commits(place)
        with contender.work(place, entry.children) as running:
            running.reached(jobs // 10)
            began, first = time.monotonic(), place.count()
            before = meters.read(place, running.pid)
            metered = place.count()
            running.reached(jobs)
            took = time.monotonic() - began
            # Counted is not settled: what ends a job belongs to its cost.
            time.sleep(_IN_FLIGHT)
            until(lambda: contender.empty(place), _SETTLED_WITHIN)
            cost = (meters.read(place, running.pid) - before).per(max(1, jobs - metered))
        made = meters.commits(place) - commits
    return Round(
        rate=(jobs - first) / took,
        commits=made / jobs,
        fill_rate=jobs / filled,
        seconds=took,
        **cost,
    )


def size(entry: Entry, server: Server, redis: Keeping | None) -> int:
    """How many jobs a contender works off in some seconds, by a first try."""
    once = drain(entry, server, redis, PROBE)
    if once.seconds < LONG_ENOUGH:
        once = drain(entry, server, redis, 20 * PROBE)
    return int(min(MOST, max(FEWEST, once.rate * SECONDS)) // 500 * 500)


def _settle_down(url: str, *, relational: bool) -> None:
    """Every planner knows its tables, and no checkpoint of the filling is under way."""
    if relational:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")
