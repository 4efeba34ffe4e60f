"""Jobs for later: from the time they are due to the first line of their handler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bench.jobs import QUEUE
from bench.workers import until, worker
from tenure import Tenure

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

RATE = 500


def run(server: Server, report: Report) -> None:
    count = 2_000 if report.short else 10_000
    for listening in (True, False):
        how = "with LISTEN" if listening else "by polling alone"
        report.title(f"{count:,} jobs for later, due at {RATE}/s, {how}")
        waits = _measure(server, count, listening=listening)
        p50, p99, worst = waits[len(waits) // 2], waits[int(len(waits) * 0.99)], waits[-1]
        report.line(f"due:{how}", f"  p50 {p50:.1f} ms", p50=p50, p99=p99, worst=worst)
        report.bar(f"due:{how}:p99", "p99 from run_at to the handler", p99, 250, " ms")
        report.bar(f"due:{how}:worst", "the latest of all", worst, 1000, " ms")


def _measure(server: Server, count: int, *, listening: bool) -> list[float]:
    url = server.database()
    app = Tenure(url)

    @app.task(name="stamp", queue=QUEUE)
    async def stamp(number: int) -> None:
        """As in bench.jobs."""

    start = datetime.now(UTC) + timedelta(seconds=5)
    due = {n: start + timedelta(seconds=n / RATE) for n in range(count)}
    app.enqueue_many(stamp.using(run_at=at).bind(number) for number, at in due.items())
    with worker(url, "concurrency=100", listen=listening) as running:
        until(lambda: len(running.stamps()) >= count, 60 + count / RATE)
        began = running.stamps()
    app.close()
    server.drop(url)
    return sorted((began[n] - at.timestamp()) * 1e3 for n, at in due.items())
