"""Nemeses count what they were seen to break, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from proof.faults.harness import OWN
from proof.faults.nemeses.network import Narrow
from proof.faults.nemeses.server import Convoy, PinHorizon, TerminateBackends
from support.processes import wait_for
from support.proxy import Proxy
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proof.faults.harness import Bed
    from support.databases import Databases

REQUESTED = """
SELECT count(*) FROM pg_locks AS l WHERE NOT l.granted AND l.mode = 'AccessExclusiveLock'
"""
BLOCKED = "SELECT count(*) FROM pg_locks AS l WHERE NOT l.granted AND l.pid = %(pid)s"


class Stub:
    """Of a bed, what these nemeses know."""

    def __init__(self, url: str) -> None:
        self.plain = url
        self.url = f"{url}?application_name={OWN}"
        self.rng = Random(0)  # noqa: S311 - to be repeated

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query.encode(), parameters).fetchall()


@pytest.fixture
def bed(databases: Databases) -> Iterator[Bed]:
    """A bed without workers, on a database with the schema."""
    url = databases.create(databases.template("tenure", install))
    yield cast("Bed", Stub(url))
    databases.drop(url)


@pytest.fixture
def user(bed: Bed) -> Iterator[psycopg.Connection[Any]]:
    """Another program's connection."""
    with psycopg.connect(cast("Stub", bed).plain, autocommit=True) as connection:
        yield connection


def test_migration_without_waiters_is_not_a_fault(bed: Bed) -> None:
    convoy = Convoy()
    assert convoy.strike(bed)
    assert wait_for(lambda: bed.rows(REQUESTED) == [(1,)], 10)
    convoy.look(bed)
    assert convoy.relieve(bed) == 0


def test_who_reads_jobs_waits_behind_a_migration_until_it_is_over(
    bed: Bed, user: psycopg.Connection[Any]
) -> None:
    convoy = Convoy()
    with ThreadPoolExecutor(1) as pool:
        assert convoy.strike(bed)
        assert wait_for(lambda: bed.rows(REQUESTED) == [(1,)], 10)
        reading = pool.submit(user.execute, "SELECT count(*) FROM tenure.job")
        assert wait_for(lambda: bed.rows(BLOCKED, pid=user.info.backend_pid) == [(1,)], 10)
        convoy.look(bed)
        assert convoy.relieve(bed) == 1
        reading.result(10)


def test_only_connections_of_others_are_terminated(bed: Bed, user: psycopg.Connection[Any]) -> None:
    with psycopg.connect(bed.url, autocommit=True) as own:
        terminate = TerminateBackends()
        assert terminate.strike(bed) == 0
        assert terminate.relieve(bed) == 1
        with pytest.raises(psycopg.OperationalError):
            user.execute("SELECT 1")
        assert terminate.strike(bed) == 0
        assert terminate.relieve(bed) == 0
        own.execute("SELECT 1")


def test_released_horizon_is_not_a_fault(bed: Bed) -> None:
    pin = PinHorizon()
    assert pin.strike(bed)
    assert pin.relieve(bed) == 1
    assert pin.strike(bed)
    bed.rows(f"SELECT pg_terminate_backend({pin._pid}, 5000)")
    assert pin.relieve(bed) == 0


def test_a_narrow_link_is_a_fault_once_something_waits(bed: Bed) -> None:
    narrow = Narrow()
    with (
        Proxy(cast("Stub", bed).plain) as proxy,
        psycopg.connect(proxy.url, autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        there = SimpleNamespace(proxy=proxy, struck=False)
        beside = cast("Bed", SimpleNamespace(rng=bed.rng, unharmed=lambda: there))
        assert narrow.strike(beside)
        assert narrow.relieve(beside) == 0
        assert narrow.strike(beside)
        answer = pool.submit(connection.execute, "SELECT repeat('x', 1000000)")
        assert wait_for(lambda: narrow.look(beside) or narrow._held, 10)
        assert narrow.relieve(beside) == 1
        answer.result(10)
