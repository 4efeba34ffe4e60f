"""`just prove horizon [--short] [--entries N]`: a worker that starts while a transaction has been
open for hours, so that vacuum could remove nothing, runs its first job soon.

Its first claim would walk over every dead entry of the queue's index. Two queues, each with as many
dead entries: in one the due jobs are new, in the other they lie among the dead ones. Once with the
queues named, once with all queues. The short form has fewer entries, and scales the time that
statements have with them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.horizon import add_dead, add_due, pinned
from support.store import install
from support.workers import Worker
from tenure import Tenure
from tenure._store.postgres import connections
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from datetime import datetime

FULL = 10_000_000
SHORT = 800_000
JOBS = 20
FIRST_WITHIN = 15.0
ALL_WITHIN = 120.0
# What a claim has in the short form, in milliseconds, instead of ten seconds and one.
_SCALED = "PROOF_HORIZON_TIMEOUT"
_AGO = timedelta(hours=3)
_QUEUES = ("new", "old")
_TARGET = "proof.horizon:app"
_FILE = ROOT / ".cache/proof/horizon.json"
_SETTINGS = {
    "max_connections": "50",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "autovacuum": "off",
}
_DONE = """
SELECT count(*), extract(epoch FROM min(claimed_at))::float8
FROM tenure.job_archive
WHERE queue = %(queue)s AND state = 'completed' AND created_at >= %(since)s
"""


def _app() -> Tenure:
    scaled = os.environ.get(_SCALED)
    if scaled is None:
        return Tenure()
    # In a worker of the short form, before it connects.
    connections._SERVER["statement_timeout"] = f"{scaled}ms"  # noqa: SLF001 - scaled for the bed
    return Tenure(defaults=replace(DEFAULTS, first_claim=timedelta(milliseconds=int(scaled) / 2)))


app = _app()


@app.task(name="noop", queue="new")
async def noop() -> None:
    """A job that is counted."""


def prove(*, entries: int, short: bool) -> Report:
    """Run it on a private server."""
    report = Report({"entries": entries})
    report.part("horizon")
    with Cluster(15, settings=_SETTINGS) as cluster, tempfile.TemporaryDirectory() as directory:
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        with psycopg.connect(url, autocommit=True) as admin, pinned(url):
            for queue in _QUEUES:
                add_dead(url, queue, entries, _now(admin) - _AGO)
            walked = _walk(admin)
            report.note("a claim from zero takes", walked, " s")
            report.note("table of jobs", _size(admin), " MB")
            report.fault("pinned")
            scaled = {_SCALED: str(max(int(walked * 1000 / 3), 20))} if short else {}
            for queues in ("new,old", "*"):
                report.part(f"queues {queues}")
                _work(url, admin, Path(directory), queues, scaled, report)
    return report


def _now(admin: psycopg.Connection[Any]) -> datetime:
    row = admin.execute("SELECT now()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


def _size(admin: psycopg.Connection[Any]) -> int:
    row = admin.execute("SELECT pg_total_relation_size('tenure.job') / 1000000").fetchone()
    assert row is not None
    return int(row[0])


def _walk(admin: psycopg.Connection[Any]) -> float:
    """How long it takes to find out that nothing is due before the dead entries end."""
    admin.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
    began = time.monotonic()
    admin.execute(
        "SELECT id FROM tenure.job WHERE NOT held AND state = 'queued' AND queue = 'new' "
        "AND priority = 5 AND NOT returned AND run_at <= now() ORDER BY run_at, id LIMIT 1"
    )
    return time.monotonic() - began


def _work(
    url: str,
    admin: psycopg.Connection[Any],
    directory: Path,
    queues: str,
    environment: dict[str, str],
    report: Report,
) -> None:
    began = _now(admin)
    add_due(url, "new", JOBS, began)
    add_due(url, "old", JOBS, began - _AGO + timedelta(seconds=1))
    with Worker(_TARGET, url, directory, environment, queues=queues, concurrency=10) as worker:
        done = _until(admin, began, worker)
        report.note("warnings in the worker's log", worker.log().count("WARNING"))
    for queue, bar in (("new", FIRST_WITHIN), ("old", ALL_WITHIN)):
        count, first = done[queue]
        report.jobs += count
        report.at_least(f"jobs done in queue {queue}", count, JOBS)
        seconds = 2 * ALL_WITHIN if first is None else first - began.timestamp()
        report.at_most(f"first job of queue {queue}, after the worker's start", seconds, bar, " s")


def _until(
    admin: psycopg.Connection[Any], since: datetime, worker: Worker
) -> dict[str, tuple[int, float | None]]:
    """How many jobs of each queue were done, and when the first was claimed; waits for all."""
    deadline = time.monotonic() + ALL_WITHIN
    while True:
        done: dict[str, tuple[int, float | None]] = {}
        for queue in _QUEUES:
            row = admin.execute(_DONE, {"queue": queue, "since": since}).fetchone()
            assert row is not None
            done[queue] = row[0], row[1]
        if (
            not worker.alive
            or time.monotonic() > deadline
            or all(count >= JOBS for count, _ in done.values())
        ):
            return done
        time.sleep(0.1)


def main(words: list[str]) -> int:
    """Prove it as the words say."""
    parser = argparse.ArgumentParser(prog="just prove horizon")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--entries", type=int)
    options = parser.parse_args(words)
    entries = options.entries or (SHORT if options.short else FULL)
    return tried(lambda: prove(entries=entries, short=options.short), _FILE, short=options.short)
