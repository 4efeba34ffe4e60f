"""From an enqueue to the first line of its handler, beside a bare INSERT + LISTEN loop."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from bench.jobs import QUEUE
from bench.workers import until, worker
from tenure import Tenure

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.report import Report
    from bench.server import Server

RATE, CALLERS, HELD_FOR = 20, 4, 0.020


def run(server: Server, report: Report) -> None:
    samples, rounds = (150, 2) if report.short else (1000, 3)
    for held, how in ((False, "autocommit"), (True, "inside transactions of 20 ms")):
        report.title(f"Enqueue to start at {RATE}/s, {how}: {rounds} times {samples:,}")
        figures = [_round(server, samples, seed, held=held) for seed in range(rounds)]
        for number, (ours, bare) in enumerate(figures, 1):
            report.line(
                f"start:{how}:{number}",
                f"  round {number}: tenure p50 {ours[0]:.1f} p99 {ours[1]:.1f} ms, "
                f"bare p50 {bare[0]:.1f} p99 {bare[1]:.1f} ms",
                tenure=ours,
                bare=bare,
            )
        report.bar(f"start:{how}:p50", "p50, best", min(f[0][0] for f in figures), 5, " ms")
        ratio = min(ours[1] / bare[1] for ours, bare in figures)
        report.bar(f"start:{how}:p99", "p99 as a ratio to bare, best", ratio, 1.5)


def _round(
    server: Server, samples: int, seed: int, *, held: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both at once, each at the same rate: whatever disturbs one disturbs the other."""
    url = server.database()
    app = Tenure(url)

    @app.task(name="stamp", queue=QUEUE)
    async def stamp(number: int) -> None:
        """As in bench.jobs."""

    def ours(number: int, connection: psycopg.Connection[object], inside: bool) -> float:
        if not inside:
            began = _now()
            stamp.enqueue(number)
            return began
        stamp.using(connection=connection).enqueue(number)
        return _commit_late(connection)

    def bare(number: int, connection: psycopg.Connection[object], inside: bool) -> float:
        began = _now()
        connection.execute(
            "INSERT INTO bare.job (queue, task, args, priority, created_at, run_at) "
            "VALUES (%s, 'noop', %s, 5, clock_timestamp(), clock_timestamp())",
            [QUEUE, json.dumps({"number": number})],
        )
        connection.execute("SELECT pg_notify('bare', '')")
        if not inside:
            connection.commit()
            return began
        return _commit_late(connection)

    with (
        worker(url, "concurrency=10") as tenures,
        worker(url, "", command=[sys.executable, "-m", "bench.bare_worker"]) as bares,
    ):
        _warm(lambda n, c: ours(n, c, False), url, lambda: bool(tenures.stamps()))
        _warm(lambda n, c: bare(n, c, False), url, lambda: bool(bares.stamps()))
        sent: dict[str, dict[int, float]] = {"ours": {}, "bare": {}}
        threads = [
            threading.Thread(target=_caller, args=(url, send, sent[name], samples, held, seed, n))
            for name, send in (("ours", ours), ("bare", bare))
            for n in range(CALLERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: sent["ours"].keys() <= tenures.stamps().keys(), 30)
        until(lambda: sent["bare"].keys() <= bares.stamps().keys(), 30)
        result = (
            _quantiles(sent["ours"], tenures.stamps()),
            _quantiles(sent["bare"], bares.stamps()),
        )
    app.close()
    server.drop(url)
    return result


def _caller(
    url: str,
    send: Callable[[int, psycopg.Connection[object], bool], float],
    sent: dict[int, float],
    samples: int,
    held: bool,
    seed: int,
    caller: int,
) -> None:
    """Poisson arrivals from a seed, on a connection of its own."""
    chance = random.Random(f"{seed}/{caller}")  # noqa: S311 - arrivals, not secrets
    with psycopg.connect(url) as connection:
        at = time.monotonic()
        for number in range(caller, samples, CALLERS):
            at += chance.expovariate(RATE / CALLERS)
            time.sleep(max(0.0, at - time.monotonic()))
            sent[number] = send(number, connection, held)


def _warm(
    send: Callable[[int, psycopg.Connection[object]], object], url: str, ready: Callable[[], bool]
) -> None:
    with psycopg.connect(url) as connection:
        for number in range(10_000_000, 10_000_020):
            send(number, connection)
            time.sleep(0.01)
    until(ready, 20)


def _commit_late(connection: psycopg.Connection[object]) -> float:
    time.sleep(HELD_FOR)
    began = _now()
    connection.commit()
    return began


def _quantiles(sent: dict[int, float], began: dict[int, float]) -> tuple[float, float]:
    waits = sorted((began[number] - at) * 1e3 for number, at in sent.items())
    return waits[len(waits) // 2], waits[int(len(waits) * 0.99)]


def _now() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)
