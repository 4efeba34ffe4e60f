"""How fast one child works off jobs that do nothing, beside the bare loop in the same run."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from bench.jobs import app as jobs
from bench.workers import until, worker

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

SLOTS = 100
BATCH = 100


def run(server: Server, report: Report) -> None:
    count, rounds = (10_000, 1) if report.short else (50_000, 3)
    report.title(f"{count:,} no-op jobs by one child with {SLOTS} slots, {rounds} rounds")
    for task in ("noop", "noop_thread"):
        figures = [_round(server, task, count) for _ in range(rounds)]
        rate, bare, busy = (statistics.median(f[n] for f in figures) for n in range(3))
        report.line(
            f"drain:{task}",
            f"  {task}: {rate:,.0f} jobs/s, {busy * 1e6:.0f} µs of the child's processor time per "
            f"job; bare at batches of {BATCH} {bare:,.0f} jobs/s; ratio {rate / bare:.2f}",
            rounds=figures,
        )


def _round(server: Server, task: str, count: int) -> tuple[float, float, float]:
    url = server.database()
    _enqueue(url, task, count)
    with server.admin(url) as admin, worker(url, f"concurrency={SLOTS}") as running:

        def left() -> int:
            row = admin.execute("SELECT count(*) FROM tenure.job").fetchone()
            return int(row[0]) if row else 0

        until(lambda: left() < count, 30)
        began, first, busy = time.monotonic(), left(), running.processor_time()
        until(lambda: left() == 0, 300)
        took = time.monotonic() - began
        busy = running.processor_time() - busy
    rate = first / took
    bare = _bare(server, url, count)
    server.drop(url)
    return rate, bare, busy / first


def _enqueue(url: str, task: str, count: int) -> None:
    from tenure import Tenure  # noqa: PLC0415

    app = Tenure(url)
    definition = jobs.tasks[task].function
    bound = app.task(name=task, queue="bench")(definition).bind()
    app.enqueue_many(bound for _ in range(count))
    app.close()


def _bare(server: Server, url: str, count: int) -> float:
    bare = server.bare(url)
    for _ in range(count // 1000):
        bare.enqueue(1000, "{}")
    began = time.monotonic()
    done = 0
    while claims := bare.claim(BATCH):
        bare.settle(claims)
        done += len(claims)
    rate = done / (time.monotonic() - began)
    bare.connection.close()
    return rate
