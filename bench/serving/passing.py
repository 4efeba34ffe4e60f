"""How many jobs pass through the protocol: 200 clients wait, then there are jobs for all of them,
acquired and settled in batches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bench.serving.bed import CLIENTS, serviced
from bench.subjects import QUEUE, Tenure
from bench.workers import until
from tenure._model.job import NewJob
from tenure._store.postgres.connections import connect

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

BAR = 1_000
_BATCHES = (50, 10, 1)
_JOBS = {1: 1_000, 10: 8_000, 50: 20_000}
_SHORT = 5
_AT_ONCE = 1000
_WAITING = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"
_DONE = "SELECT count(*) FROM tenure.job_archive"


def run(server: Server, report: Report) -> None:
    report.title(f"Passing: jobs per second through {CLIENTS} clients, and what one costs")
    rates = {}
    for batch in _BATCHES:
        jobs = _JOBS[batch] // (_SHORT if report.short else 1)
        rates[batch] = _pass(server, report, batch, jobs)
    report.at_least("passing", "jobs/s in batches of 50", rates[50], BAR)


def _pass(server: Server, report: Report, batch: int, jobs: int) -> float:
    url = server.database()
    with (
        connect(url) as connection,
        server.admin(url) as admin,
        serviced(server, url, clients=CLIENTS, count=batch) as bed,
    ):

        def counted(query: str) -> int:
            row: Any = admin.execute(query).fetchone()
            return int(row[0])

        until(lambda: counted(_WAITING) >= CLIENTS, 120)
        before, began = bed.cost(), time.monotonic()
        store = Tenure(connection)
        for start in range(0, jobs, _AT_ONCE):
            many = [NewJob("noop", QUEUE)] * min(jobs - start, _AT_ONCE)
            store.session.run(store.store.jobs.enqueue(many))
        until(lambda: counted(_DONE) >= jobs, 300)
        took, cost = time.monotonic() - began, bed.cost() - before
    server.drop(url)
    each = {
        name: 1e6 * used / jobs
        for name, used in (
            ("database", cost.database),
            ("server", cost.server),
            ("clients", cost.clients),
        )
    }
    report.line(
        f"passing:{batch}",
        f"  batches of {batch:2}: {jobs / took:7.0f} jobs/s; a job's µs: "
        + ", ".join(f"{name} {us:.0f}" for name, us in each.items()),
        rate=jobs / took,
        jobs=jobs,
        **each,
    )
    return jobs / took
