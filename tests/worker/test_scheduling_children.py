"""Which of a worker's processes fires schedules: one of them, and after its death another."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.processes import send
from support.store import install
from support.workers import Bed, Worker, soon
from tests.worker.scheduled import TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.databases import Databases

FIRING = (
    "SELECT application_name AS name FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'tenure % scheduler'"
)


@pytest.fixture
def bed(databases: Databases, tmp_path: Path) -> Iterator[Bed]:
    """A fresh database with the schema of this release."""
    bed = Bed(databases.create(databases.template("tenure", install)), tmp_path)
    yield bed
    bed.close()
    databases.drop(bed.url)


def firing(bed: Bed) -> set[str]:
    """The processes that fire schedules: the names of the children."""
    found = (row["name"] for row in bed.fetch(FIRING))
    return {name.removeprefix("tenure ").removesuffix(" scheduler") for name in found}


def ticks(bed: Bed) -> int:
    return bed.count("SELECT count(*) FROM tenure.schedule_tick")


def more_ticks(bed: Bed, count: int = 2) -> None:
    """Return once this many more are recorded."""
    wanted = ticks(bed) + count
    soon(lambda: ticks(bed) >= wanted, 10, "no more ticks")


def kill(bed: Bed, name: str) -> None:
    [pid] = [worker.pid for worker in bed.workers() if worker.name == name]
    send(pid, signal.SIGKILL)


def assert_whole(bed: Bed) -> None:
    """Every second from the first tick to the last has its one job."""
    rows = bed.fetch(
        "SELECT fire_at, job_id, outcome FROM tenure.schedule_tick ORDER BY schedule, fire_at"
    )
    first = rows[0]["fire_at"]
    assert [row["fire_at"] - first for row in rows] == [
        timedelta(seconds=n) for n in range(len(rows))
    ]
    assert {row["outcome"] for row in rows} == {"fired"}
    assert len({row["job_id"] for row in rows}) == len(rows)


def test_of_a_workers_children_one_fires_and_when_it_dies_another_takes_it_over(bed: Bed) -> None:
    """Shows R26."""
    with Worker(TARGET, bed.url, bed.directory, processes=2, name="anna") as worker:
        soon(lambda: len(bed.workers()) == 2 and bool(firing(bed)), 20, "no scheduler")
        [first] = firing(bed)
        more_ticks(bed)
        kill(bed, first)
        soon(lambda: bool(firing(bed) - {first}), 10, "no other scheduler")
        more_ticks(bed)
        [second] = firing(bed)
        # It was there already: no job waited for a new process.
        assert {first, second} == {"anna/1", "anna/2"}
        soon(lambda: len(worker.children) == 2, 10, "no replacement")
        kill(bed, second)
        soon(lambda: firing(bed) == {"anna/3"}, 10, "the replacement does not take over")
        more_ticks(bed)
        worker.send(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert_whole(bed)


def test_the_replacement_of_an_only_child_fires_too(bed: Bed) -> None:
    """Shows R26."""
    with Worker(TARGET, bed.url, bed.directory, name="anna"):
        soon(lambda: bool(bed.workers()) and firing(bed) == {"anna/1"}, 20, "no scheduler")
        more_ticks(bed)
        kill(bed, "anna/1")
        soon(lambda: firing(bed) == {"anna/2"}, 20, "the replacement does not fire")
        more_ticks(bed)
    assert_whole(bed)


def test_after_a_reload_the_new_child_fires_and_the_old_one_no_more(bed: Bed) -> None:
    with Worker(TARGET, bed.url, bed.directory, processes=2, name="anna") as worker:
        soon(lambda: len(bed.workers()) == 2 and bool(firing(bed)), 20, "no scheduler")
        worker.send(signal.SIGHUP)
        soon(lambda: "reloaded" in worker.log(), 20, "no reload")
        soon(lambda: len(worker.children) == 2, 20, "the old children do not end")
        soon(lambda: len(firing(bed)) == 1, 10, "none or several fire")
        assert firing(bed) < {"anna/3", "anna/4"}
        more_ticks(bed)
    assert_whole(bed)


def test_when_an_operator_drains_the_child_that_fires_another_takes_it_over(bed: Bed) -> None:
    with Worker(TARGET, bed.url, bed.directory, processes=2, name="anna"):
        soon(lambda: len(bed.workers()) == 2 and bool(firing(bed)), 20, "no scheduler")
        [first] = firing(bed)
        [row] = [worker for worker in bed.workers() if worker.name == first]
        bed.fetch("UPDATE tenure.worker SET drain_requested = true WHERE id = %s", row.id)
        soon(lambda: bool(firing(bed) - {first}), 20, "no other scheduler")
        more_ticks(bed)
    assert_whole(bed)


def test_worker_without_schedules_fires_nothing(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_SCHEDULES", "false")
    with Worker(TARGET, bed.url, bed.directory) as worker:
        soon(lambda: bool(bed.workers()), 20, "no worker")
        worker.send(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert bed.fetch("SELECT name FROM tenure.schedule") == []
