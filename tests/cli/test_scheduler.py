"""`tenure scheduler` as a process: it declares and fires, waits for its database, and ends soon."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from support.processes import wait_for
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from support.store import Database
    from tests.cli.conftest import Command

PROGRAM = """
from tenure import Tenure

app = Tenure(version="2026.11")

@app.schedule(every=1, name="seconds")
@app.task
def hello() -> None: ...
"""


def rows(db: Database, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(db.url, row_factory=dict_row) as connection:
        return connection.execute(query.encode()).fetchall()


@contextmanager
def scheduler(tenure: Command, *options: str, **environment: str) -> Iterator[tuple[Any, Path]]:
    """The command, and the file with its words."""
    words = tenure.directory / f"words-{time.monotonic_ns()}"
    with (
        words.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tenure", "scheduler", "jobs:app", *options],
            cwd=tenure.directory,
            env=tenure.environment(**environment),
            stderr=file,
        ) as process,
    ):
        try:
            yield process, words
        finally:
            process.kill()


def ended_soon(process: Any, request: signal.Signals) -> int:
    """Its exit code, after this signal; it must not take long."""
    requested_at = time.monotonic()
    process.send_signal(request)
    code: int = process.wait(10)
    assert time.monotonic() - requested_at < 3
    return code


def test_it_declares_and_fires_and_runs_no_jobs_until_stopped(
    tenure: Command, db: Database
) -> None:
    """Two of them make no tick twice. Shows R26."""
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    with (
        scheduler(tenure, "--name", "anna") as (anna, words),
        scheduler(tenure, "--log-level", "warning") as (berta, quiet),
    ):
        ticked = "SELECT fire_at, job_id FROM tenure.schedule_tick"
        assert wait_for(lambda: len(rows(db, ticked)) >= 2, 20)
        names = "SELECT application_name AS name FROM pg_stat_activity"
        assert "tenure anna scheduler" in {row["name"] for row in rows(db, names)}
        assert ended_soon(anna, signal.SIGTERM) == Exit.DONE
        assert ended_soon(berta, signal.SIGINT) == Exit.DONE
        assert "scheduler started: program=jobs, schedules=1" in words.read_text()
        assert quiet.read_text() == ""
    ticks = rows(db, ticked)
    jobs = rows(db, "SELECT id, state, meta FROM tenure.job")
    assert sorted(job["id"] for job in jobs) == sorted(tick["job_id"] for tick in ticks)
    assert {job["state"] for job in jobs} == {"queued"}
    assert {job["meta"]["schedule"] for job in jobs} == {"seconds"}
    [declared] = rows(db, "SELECT program, program_version FROM tenure.schedule")
    assert declared == {"program": "jobs", "program_version": [2026, 11]}


def test_it_waits_for_a_database_that_is_away_and_can_be_ended_then(command: Command) -> None:
    (command.directory / "jobs.py").write_text(PROGRAM)
    url = "postgresql://localhost:1/none"
    with scheduler(command, TENURE_DATABASE_URL=url) as (process, words):
        assert wait_for(lambda: "waiting for the database" in words.read_text(), 20)
        assert ended_soon(process, signal.SIGTERM) == Exit.DONE


def test_schema_mismatch_names_the_command_to_run(bare: Command) -> None:
    (bare.directory / "jobs.py").write_text(PROGRAM)
    ended = bare("scheduler", "jobs:app")
    assert ended.code == Exit.SCHEMA
    assert "tenure db migrate" in ended.error[2]


def test_app_that_cannot_be_loaded_is_reported_with_its_place(command: Command) -> None:
    (command.directory / "jobs.py").write_text("import tenure\n1 / 0\n")
    ended = command("scheduler", "jobs:app")
    assert ended.code == Exit.FAILED
    assert ended.error[1].endswith("jobs.py:2)")
    assert "division by zero" in ended.error[1]
    assert command("scheduler", "nowhere:app").code == Exit.USAGE
    assert command("scheduler").code == Exit.USAGE


def test_version_without_an_order_is_refused_at_start(
    tenure: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tenure.directory / "jobs.py").write_text(PROGRAM.replace('version="2026.11"', ""))
    for command in ("scheduler", "worker"):
        ended = tenure(command, "jobs:app", TENURE_VERSION="3f2a9c1")
        assert ended.code in (Exit.USAGE, Exit.FAILED)
        assert "got '3f2a9c1'" in ended.error[1]
        assert "2026.11.15" in ended.error[2]


def test_a_job_of_a_schedule_is_shown_with_it_and_its_tick(tenure: Command, db: Database) -> None:
    """Shows R28."""
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    with scheduler(tenure):
        assert wait_for(lambda: bool(rows(db, "SELECT id FROM tenure.job")), 20)
    shown = tenure("job", "show", 1).out
    [schedule] = [line for line in shown.splitlines() if line.startswith("schedule ")]
    [tick] = [line for line in shown.splitlines() if line.startswith("scheduled for")]
    assert schedule.split() == ["schedule", "seconds"]
    assert tick.rstrip().endswith("Z")
