"""The private server and its databases do what the other tests take for granted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support import binaries
from support.cluster import Cluster
from support.processes import alive, children, wait_for

if TYPE_CHECKING:
    from support.databases import Databases


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def make_thing(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE thing AS SELECT 1 AS id")


def test_cluster_runs_the_requested_version(cluster: Cluster) -> None:
    assert ask(cluster.url(), "SELECT version()").startswith(f"PostgreSQL {cluster.major}.")


def test_databases_from_one_template_are_separate(databases: Databases) -> None:
    template = databases.template("template_thing", make_thing)
    one, other = databases.create(template), databases.create(template)

    with psycopg.connect(one) as connection:
        connection.execute("INSERT INTO thing VALUES (2)")

    assert ask(one, "SELECT count(*) FROM thing") == 2
    assert ask(other, "SELECT count(*) FROM thing") == 1
    databases.drop(one)
    databases.drop(other)


def test_a_template_is_prepared_once(databases: Databases) -> None:
    urls: list[str] = []
    databases.template("template_once", urls.append)
    databases.template("template_once", urls.append)
    assert len(urls) == 1


def test_drop_ends_connections_that_are_still_open(databases: Databases) -> None:
    url = databases.create()
    with psycopg.connect(url, autocommit=True) as connection:
        databases.drop(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_fresh_database_is_empty(empty_database: str) -> None:
    assert ask(empty_database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0


def test_stop_leaves_neither_process_nor_directory(cluster: Cluster) -> None:
    own = Cluster(cluster.major)
    own.start()
    directory = own.directory
    family = [own.pid, *children(own.pid)]
    assert len(family) > 1

    own.stop()

    assert not any(alive(pid) for pid in family)
    assert not directory.exists()


def test_what_was_committed_survives_a_kill_and_the_url_stays_good(cluster: Cluster) -> None:
    with Cluster(cluster.major) as own:
        url = own.url()
        make_thing(url)
        family = [own.pid, *children(own.pid)]

        own.kill()
        assert not any(alive(pid) for pid in family)
        own.start()
        assert ask(url, "SELECT count(*) FROM thing") == 1

        own.restart()
        assert ask(url, "SELECT count(*) FROM thing") == 1


OWNER = """
import sys
from support.cluster import Cluster

cluster = Cluster(int(sys.argv[1]))
cluster.start()
print(cluster.pid, cluster.directory, flush=True)
sys.stdin.read()
"""


def test_the_server_ends_with_an_owner_that_is_killed(cluster: Cluster) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(cluster.major)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=binaries.ROOT,
    ) as owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split()
        assert alive(int(pid))
        owner.kill()

    assert wait_for(lambda: not alive(int(pid)), 20)
    shutil.rmtree(directory)


def test_settings_can_be_given(cluster: Cluster) -> None:
    with Cluster(cluster.major, {"max_connections": "17"}) as own:
        assert ask(own.url(), "SHOW max_connections") == "17"


def test_a_missing_server_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_candidates", lambda _major: iter(()))
    with pytest.raises(binaries.BinariesNotFoundError, match="run: just pg18"):
        binaries.find(18)
