"""`tenure doctor`: findings in words and as JSON, and an exit code for who only asks that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cluster import Cluster
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

APP = "from tenure import Tenure\napp = Tenure(redis='redis://:hush@127.0.0.1:1/0')\n"


@pytest.fixture(scope="module")
def sound() -> Iterator[str]:
    """The URL of a database on a server that forces to disk what it acknowledges."""
    with Cluster(15, {"fsync": "on", "full_page_writes": "on"}) as cluster:
        install(cluster.url())
        yield cluster.url()


def test_without_a_problem_it_ends_well(command: Command, sound: str) -> None:
    done = command("doctor", TENURE_DATABASE_URL=sound)
    assert (done.code, done.err) == (0, "13 findings, 0 of them problems\n")
    assert "warning  workers    no worker is live\n" in done.out
    assert "why: jobs can be enqueued, but do not run\n" in done.out
    assert "do:  run: tenure worker module:app\n" in done.out


def test_a_problem_fails_it(tenure: Command) -> None:
    done = tenure("doctor")
    assert done.code == 1
    assert "problem  durability fsync is off\n" in done.out


def test_a_database_that_is_away_is_a_problem_like_any_other(command: Command) -> None:
    done = command("doctor", "--database-url", "postgresql://ada:hush@127.0.0.1:1/x")
    assert done.code == 1
    assert done.out.startswith("problem  database   the database does not answer")
    assert "hush" not in done.out + done.err


def test_findings_come_as_json_too(tenure: Command) -> None:
    found = tenure("doctor", "--json").json
    assert found["problems"] == 2
    assert {"subject", "level", "what", "why", "todo", "fault"} == set(found["findings"][0])


def test_an_app_is_examined_with_its_own_redis(tenure: Command) -> None:
    (tenure.directory / "jobs.py").write_text(APP)
    done = tenure("doctor", "jobs:app")
    assert done.code == 1
    assert "problem  redis      Redis is not responding" in done.out
    assert "hush" not in done.out + done.err


def test_app_that_cannot_be_loaded_is_reported(tenure: Command) -> None:
    (tenure.directory / "jobs.py").write_text("1 / 0")
    done = tenure("doctor", "jobs:app")
    assert (done.code, done.error[0]) == (1, "the app cannot be loaded")
    assert tenure("doctor", "nowhere:app").code == 2


def test_without_a_database_configured_it_says_so(command: Command) -> None:
    assert command("doctor").code == 2
