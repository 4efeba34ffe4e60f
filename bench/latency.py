"""From COMMIT to claimed, when enqueues are part of other people's transactions."""

from __future__ import annotations

import queue
import random
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from bench.subjects import QUEUE
from tenure._model.job import NewJob
from tenure._rules.claiming import scan_delay
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Tenure

CALLERS, RATE, LONGEST = 15, 300, 0.020


class Times:
    """When each job was committed and when it was claimed, on one clock."""

    def __init__(self) -> None:
        self.committed: dict[int, float] = {}
        self.claimed: dict[int, float] = {}

    def waits(self) -> list[float]:
        return sorted(self.claimed[i] - at for i, at in self.committed.items() if i in self.claimed)


def run(server: Server, report: Report) -> None:
    seconds, held = (8.0, 8.0) if report.short else (33.0, 30.0)
    report.title(
        f"Enqueues in callers' transactions of 0–20 ms at {RATE}/s, from COMMIT to claimed"
    )
    url = server.database()
    times, late = Times(), Times()
    stop_callers = time.monotonic() + seconds
    finished = threading.Event()
    threads = [
        threading.Thread(target=_caller, args=(url, times, stop_callers, seed))
        for seed in range(CALLERS)
    ]
    threads.append(threading.Thread(target=_straggler, args=(url, late, held)))
    claimer = threading.Thread(
        target=_claimer, args=(server.tenure(url), server.tenure(url), (times, late), finished)
    )
    claimer.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(3)
    finished.set()
    claimer.join()
    waits = times.waits()
    lost = len(times.committed) - len(waits) + len(late.committed) - len(late.waits())
    p50, p99 = waits[len(waits) // 2] * 1e3, waits[int(len(waits) * 0.99)] * 1e3
    report.line("commit:p50", f"  {len(waits):,} jobs, p50 {p50:.1f} ms", jobs=len(waits), p50=p50)
    report.bar("commit:p99", "p99 from COMMIT to claimed", p99, 30, " ms")
    straggler = max(late.waits(), default=float("inf"))
    report.bar("commit:long", f"after a transaction of {held:.0f} s", straggler, 1, " s")
    report.bar("commit:lost", "jobs never claimed", lost, 0)
    server.drop(url)


def _caller(url: str, times: Times, stop: float, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - arrivals, not secrets
    store = PostgresStore()
    with psycopg.connect(url) as connection:
        session = Session(connection, own=False)
        at = time.monotonic()
        while at < stop:
            at += chance.expovariate(RATE / CALLERS)
            time.sleep(max(0.0, at - time.monotonic()))
            [job] = session.run(store.jobs.enqueue([NewJob("noop", QUEUE)]))
            time.sleep(chance.uniform(0, LONGEST))
            times.committed[job.id] = time.monotonic()
            connection.commit()


def _straggler(url: str, times: Times, seconds: float) -> None:
    with psycopg.connect(url) as connection:
        [job] = Session(connection, own=False).run(
            PostgresStore().jobs.enqueue([NewJob("noop", QUEUE)])
        )
        time.sleep(seconds)
        times.committed[job.id] = time.monotonic()
        connection.commit()


def _claimer(
    tenure: Tenure, settler: Tenure, books: tuple[Times, ...], finished: threading.Event
) -> None:
    """Claims when woken or every 50 ms, and scans from zero when due; another settles."""
    listener = psycopg.connect(tenure.connection.info.dsn, autocommit=True)
    listener.execute(f"LISTEN {tenure.store.jobs.channel}".encode())
    done: queue.SimpleQueue[Sequence[Any]] = queue.SimpleQueue()
    settling = threading.Thread(target=_settler, args=(settler, done))
    settling.start()
    due = 0.0

    def keep(claims: Sequence[Any]) -> None:
        now = time.monotonic()
        for claimed in claims:
            for book in books:
                book.claimed[claimed.job.id] = now
        if claims:
            done.put(claims)

    while not finished.is_set():
        for _ in listener.notifies(timeout=0.05, stop_after=1):
            pass
        tenure.woken()
        keep(tenure.claim(100))
        if time.monotonic() >= due:
            began = time.monotonic()
            keep(tenure.scan(100))
            took = timedelta(seconds=time.monotonic() - began)
            due = time.monotonic() + scan_delay(took, processes=1).total_seconds()
    done.put([])
    settling.join()
    listener.close()
    tenure.connection.close()


def _settler(tenure: Tenure, done: queue.SimpleQueue[Sequence[Any]]) -> None:
    while claims := done.get():
        tenure.settle(claims)
    tenure.connection.close()
