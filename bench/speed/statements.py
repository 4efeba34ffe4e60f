"""Statements per job: a short round of each on a server that counts them, apart from the timed
ones because counting costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg

from bench.server import server
from bench.speed.contender import ContenderError

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.field import Entry

OURS, OTHERS = 10_000, 1_000
JOBS = {"Tenure, process handlers": 1_000}
_IN_FLIGHT = 0.3
_HERE = "s.dbid = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())"
# What has claimed is the statement with SKIP LOCKED that returned the most rows.
_STATEMENTS = f"""
SELECT sum(s.calls)::float8 FROM pg_stat_statements AS s WHERE {_HERE}
UNION ALL (
    SELECT s.rows::float8 / s.calls FROM pg_stat_statements AS s
    WHERE {_HERE} AND s.query ILIKE '%skip locked%' AND s.rows > 0 ORDER BY s.rows DESC LIMIT 1
)
"""  # noqa: S608 - nothing in it comes from outside


def counted(entries: list[Entry], report: Report) -> dict[str, dict[str, float]]:
    """By name: statements per job, and the mean number of jobs of a claim if it can be told."""
    found: dict[str, dict[str, float]] = {}
    with server(shared_preload_libraries="pg_stat_statements") as running:
        for entry in entries:
            if entry.contender.redis:
                continue
            try:
                found[entry.name] = _count(entry, running)
            except (ContenderError, AssertionError) as error:
                print(f"  {entry.name}: statements not counted: {error}", flush=True)
    report.figures["statements"] = found
    return found


def _count(entry: Entry, running: Server) -> dict[str, float]:
    usual = OURS if entry.name.startswith(("Tenure", "bare")) else OTHERS
    jobs = JOBS.get(entry.name, usual)
    with entry.contender.place(running) as place:
        entry.contender.call(place, "fill", jobs)
        with psycopg.connect(place.url, autocommit=True) as admin:
            admin.execute("CREATE EXTENSION pg_stat_statements")
            admin.execute("SELECT pg_stat_statements_reset()")
            with entry.contender.work(place, entry.children) as worker:
                worker.reached(jobs)
                time.sleep(_IN_FLIGHT)
                calls, *claimed = (row[0] for row in admin.execute(_STATEMENTS))
    return {"statements": calls / jobs} | ({"claimed": claimed[0]} if claimed else {})
