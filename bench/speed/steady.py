"""Steady state: inserts at half and at nine tenths of the rate at which one child drains."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.speed.contender import tenure
from bench.speed.drain import drain
from bench.speed.field import Entry
from bench.speed.meters import read
from bench.speed.producing import produce, produced
from bench.speed.waits import Waits
from bench.workers import until

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

SHARES = (0.5, 0.9)
LEASE, EVERY = 30, 0.010


def run(server: Server, report: Report) -> None:
    report.forget("steady:", "bar:steady:")
    jobs, seconds = (10_000, 6) if report.short else (50_000, 20)
    rate = drain(Entry("Tenure", tenure()), server, None, jobs).rate
    report.title(f"Steady state for {seconds} s each; drained alone: {rate:,.0f} jobs/s")
    for share in SHARES:
        _hold(server, report, rate * share, share, seconds)


def _hold(server: Server, report: Report, rate: float, share: float, seconds: int) -> None:
    contender = tenure()
    with contender.place(server) as place, contender.work(place) as running:
        produced(place, produce(place, "batches", 100, 1, 1, LEASE, 0), 60)  # It only warms.
        until(lambda: len(place.stamps()) >= 100, 30)
        before, began = read(place, running.pid), time.monotonic()
        producer = produce(place, "batches", rate, max(1, round(rate * EVERY)), seconds, LEASE, 0)
        sent = produced(place, producer, seconds * 10)
        took, begun = time.monotonic() - began, len(place.stamps())
        cost = (read(place, running.pid) - before).per(begun)
        until(lambda: len(place.stamps()) >= len(sent), 120)
        starts = place.stamps()
    waits = Waits.of((at, starts[number]) for number, at in sent.items())
    span = max(sent.values()) - min(sent.values())
    left = len(sent) - begun
    report.line(
        f"steady:{share}",
        f"  {share:.0%}: {len(sent) / span:,.0f} jobs/s came, {left:,} were left at the end; "
        f"{waits}; per job {cost['database_us']:.0f} µs of the database, inserts included, and "
        f"{cost['worker_us']:.0f} of the worker",
        came=len(sent) / span,
        took=took,
        left=left,
        **cost,
        **waits.figures(),
    )
