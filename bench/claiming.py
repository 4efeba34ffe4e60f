"""Claims that find nothing, crowds that scan from zero, and what was given back."""

from __future__ import annotations

import statistics
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from bench import flatness
from bench.measure import Meter
from tenure._model.outcome import Released, SettleRequest
from tenure._rules.claiming import scan_delay
from tenure._rules.lifecycle import settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Tenure

CROWD = 20


def run(server: Server, report: Report) -> None:
    _empty_claims(server, report)
    _returned_first(server, report)
    _crowd(server, report)


def _empty_claims(server: Server, report: Report) -> None:
    report.title("An empty claim: twenty queues of ten lanes against one queue, µs")
    url = server.database()
    one = server.tenure(url)
    twenty = server.tenure(url, queues=[f"q{n}" for n in range(20)])
    ratios, wholes = [], []
    for _ in range(15):
        usual = {s: _empty(s, woken=False) for s in (one, twenty)}
        whole = {s: _empty(s, woken=True) for s in (one, twenty)}
        ratios.append(usual[twenty] / usual[one])
        wholes.append(whole[twenty] / whole[one])
    report.bar("empty", "empty claim, 20 queues against 1", statistics.median(ratios), 3, " ×")
    ratio = statistics.median(wholes)
    report.line("empty:woken", f"  after a wakeup, all lanes probed: {ratio:.2f} ×", ratio=ratio)
    one.connection.close()
    twenty.connection.close()
    server.drop(url)


def _empty(tenure: Tenure, *, woken: bool) -> float:
    meter = Meter()
    with meter.time(tenure.connection, "claim"):
        for _ in range(40):
            if woken:
                tenure.woken()
            tenure.claim(100)
    return meter.cpu["claim"]


def _returned_first(server: Server, report: Report) -> None:
    """A job that was released, and one that was rescued, behind 100,000 due ones."""
    url = server.database()
    tenure = server.tenure(url)
    tenure.enqueue(2, "{}")
    tenure.woken()
    released, rescued = tenure.claim(2, ttl=timedelta(milliseconds=100))
    for _ in range(100):
        tenure.enqueue(1_000, "{}")
    tenure.woken()
    tenure.claim(500)
    back = settle(Released(), attempt=1, limit=3, backoff=timedelta(0))
    tenure.session.run(tenure.store.settlement.settle([SettleRequest(released.lease, back)]))
    tenure.session.run(tenure.store.leases.rescue())
    tenure.woken()
    first = [c.job.id for c in tenure.claim(1)] + [c.job.id for c in tenure.claim(1)]
    ok = set(first) == {released.job.id, rescued.job.id}
    report.title("Given back, claimed ahead of 100,000 due jobs of its priority")
    report.bar("returned", "jobs given back that were not the next claimed", 0 if ok else 1, 0)
    tenure.connection.close()
    server.drop(url)


def _scan(tenure: Tenure, meter: Meter, scan: Callable[[], object]) -> float:
    """Scan once, measured; answers with when the next one is due."""
    began = time.monotonic()
    with meter.time(tenure.connection, "scan"):
        scan()
    took = timedelta(seconds=time.monotonic() - began)
    return time.monotonic() + scan_delay(took, processes=CROWD).total_seconds()


def _crowd(server: Server, report: Report) -> None:
    """Twenty claimers under a pinned horizon; what their scans from zero take together."""
    dead = 20_000 if report.short else 200_000
    seconds = 8.0 if report.short else 40.0
    report.title(f"{CROWD} claimers, horizon pinned over {dead:,} settled: scans from zero")
    url = server.database()
    condition = flatness.Condition("crowd", server.tenure(url), server.admin(url))
    flatness.pinned(dead)(condition)
    spent: list[float] = []
    stop = time.monotonic() + seconds

    def claim() -> None:
        tenure, meter = server.tenure(url), Meter()
        # The first claim has no floors yet: it is a scan from zero, and counts as one.
        due = _scan(tenure, meter, lambda: tenure.claim(10))
        while time.monotonic() < stop:
            tenure.woken()
            tenure.claim(10)
            if time.monotonic() >= due:
                due = _scan(tenure, meter, lambda: tenure.scan(10))
            time.sleep(0.1)
        spent.append(meter.cpu.get("scan", 0.0))
        tenure.connection.close()

    threads = [threading.Thread(target=claim) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    share = sum(spent) / seconds * 100
    report.bar("crowd", "scans from zero, share of one core in all", share, 10, " %")
    condition.horizon.close()
    condition.admin.close()
    condition.tenure.connection.close()
    server.drop(url)
