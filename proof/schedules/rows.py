"""Reads what is there: the job rows that name a tick, wherever the jobs are now, and tick rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from proof.schedules.checker import Record, Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_RUNS = """
SELECT id, meta ->> 'schedule', (meta ->> 'tick_at')::timestamptz, created_at, run_at, ended_at
FROM (
    SELECT id, meta, created_at, run_at, NULL::timestamptz AS ended_at FROM tenure.job
    UNION ALL SELECT id, meta, created_at, run_at, ended_at FROM tenure.job_archive
    UNION ALL SELECT id, meta, created_at, run_at, ended_at FROM tenure.job_failed
) AS j
WHERE meta ? 'schedule' OR meta ? 'tick_at'
"""
_RECORDS = (
    "SELECT schedule, fire_at, outcome, reason, job_id, recorded_at FROM tenure.schedule_tick"
)


def runs(url: str) -> Iterator[Run]:
    """Every job row that names a schedule or a tick."""
    with psycopg.connect(url) as connection, connection.cursor("runs") as cursor:
        cursor.itersize = 10_000
        for row in cursor.execute(_RUNS):
            yield Run(*row)


def records(url: str) -> Iterator[Record]:
    """Every tick row."""
    with psycopg.connect(url) as connection, connection.cursor("said") as cursor:
        cursor.itersize = 10_000
        for row in cursor.execute(_RECORDS):
            yield Record(*row)


def lateness(url: str) -> list[float]:
    """From each tick to its job, in seconds by the database's clock."""
    return sorted(
        (run.made_at - run.tick_at).total_seconds() for run in runs(url) if run.tick_at is not None
    )


@dataclass(frozen=True, slots=True)
class Life:
    """When a schedule was made, last changed and retired, and by which release of its program."""

    created_at: datetime
    changed_at: datetime
    retired_at: datetime | None
    program_version: list[int]


def lives(url: str) -> dict[str, Life]:
    """The schedules there are, by name."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT name, created_at, changed_at, retired_at, program_version FROM tenure.schedule"
        ).fetchall()
    return {name: Life(*rest) for name, *rest in rows}


def counted(url: str, query: str) -> Counter[tuple[Any, ...]]:
    """How often each row is among a query's."""
    with psycopg.connect(url) as connection:
        return Counter(connection.execute(query.encode()).fetchall())


def now(url: str) -> datetime:
    """The database's clock."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    at: datetime = row[0]
    return at


def caught_up(url: str, until: datetime) -> bool:
    """Whether no schedule has a tick to account for up to an instant. Only to know when to look."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM tenure.schedule WHERE next_at <= %s", [until]
        ).fetchone()
    return row == (0,)
