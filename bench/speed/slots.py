"""Handlers that wait for 10 ms, at 1,000 slots: how near they come to 100,000 jobs/s, and what
stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.measure import Spread
from bench.speed.contender import tenure
from bench.speed.drain import drain
from bench.speed.field import Entry

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

SLOTS, SECONDS = 1000, 0.010


def run(server: Server, report: Report) -> None:
    report.forget("slots")
    rounds, jobs = (1, 10_000) if report.short else (3, 40_000)
    report.title(f"Handlers of 10 ms at {SLOTS:,} slots, {rounds} rounds of {jobs:,}")
    entry = Entry("Tenure", tenure("sleep", BENCH_SLOTS=str(SLOTS)))
    figures = [drain(entry, server, None, jobs) for _ in range(rounds)]
    for number, found in enumerate(figures, 1):
        worker, database = (found.rate * us / 1e6 for us in (found.worker_us, found.database_us))
        text = (
            f"  round {number}: {found.rate:,.0f} jobs/s; of one core {worker:.0%} by the worker "
        )
        text += f"({found.worker_us:.0f} µs/job), {database:.0%} by the database "
        text += f"({found.database_us:.0f} µs/job)"
        report.line(f"slots:{number}", text, **vars(found))
    rate = Spread.of([found.rate for found in figures])
    share = rate.median * SECONDS / SLOTS
    busy = rate.median * SECONDS
    report.line(
        "slots",
        f"  {rate} jobs/s: {share:.1%} of what sleeping alone would allow; {busy:.0f} slots busy",
        rate=vars(rate),
        share=share,
        busy=busy,
    )
