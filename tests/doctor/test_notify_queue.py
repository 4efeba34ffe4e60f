"""A session that listens inside an open transaction: the server's NOTIFY queue fills up."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.cluster import Cluster
from support.databases import Databases
from support.processes import wait_for
from support.store import install
from tenure import Tenure
from tenure._store.steps import RawSql
from tenure.admin import examine
from tenure.errors import QueryFailed
from tenure.types import FindingCode, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenure._store.steps import Op, Rows
    from tenure.types import Finding

# Nearly a page each. Before PostgreSQL 17 the queue has a million pages.
_FILL = "SELECT pg_notify('other', repeat('x', 7900) || n::text) FROM generate_series(1, 10) AS n"


@pytest.fixture(scope="module")
def small() -> Iterator[Databases]:
    """Databases of a server whose queue is soon full."""
    with Cluster(18, {"max_notify_queue_pages": "64"}, in_memory=True) as cluster:
        yield Databases(cluster)


@pytest.fixture
def url(small: Databases) -> Iterator[str]:
    url = small.create(small.template("tenure", install))
    yield url
    small.drop(url)


@pytest.fixture
def listening(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that listens, and then begins a transaction that it does not end."""
    with closing(psycopg.connect(url, application_name="forgotten")) as connection:
        connection.execute("LISTEN other")
        connection.commit()
        connection.execute("SELECT 1")
        yield connection


def fill(url: str, share: float) -> float:
    """Let others notify until the queue is this full; how full it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute("SELECT pg_notification_queue_usage()").fetchone()
            assert row is not None
            if row[0] >= share:
                return float(row[0])
            try:
                connection.execute(_FILL)
            except psycopg.errors.ProgramLimitExceeded:
                return 1.0


def _notified() -> Op[Rows]:
    return (yield RawSql("SELECT pg_notify('other', 'x')"))


def found(url: str) -> Finding | None:
    faults = [each for each in examine(url) if each.fault is FindingCode.NOTIFY_QUEUE_FULL]
    return faults[0] if faults else None


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM tenure.job").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.usefixtures("listening")
def test_enqueues_survive_a_full_notify_queue(url: str) -> None:
    """Shows R1: what is refused is the wakeup, never the job."""
    assert fill(url, 1.0) == 1.0
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_notify('other', 'x')")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            connection.commit()

    app = Tenure(url)
    with pytest.raises(QueryFailed) as refused:
        app.engine.run(_notified())
    assert (refused.value.is_temporary, refused.value.is_data_error) == (True, False)

    @app.task
    def work(number: int = 0) -> None: ...

    work.enqueue()
    work.using(key="one").enqueue()
    app.enqueue_many([work.bind(n) for n in range(3)])
    with psycopg.connect(url) as connection:
        work.using(connection=connection).enqueue()
        work.using(connection=connection, key="two").enqueue()
    app.close()
    assert count(url) == 7


def test_the_doctor_names_the_oldest_transaction_when_the_queue_fills_up(
    url: str, listening: psycopg.Connection[Any]
) -> None:
    """Shows R35."""
    assert found(url) is None
    fill(url, 0.55)
    seen = found(url)
    assert seen is not None
    pid = listening.info.backend_pid
    assert (seen.subject, seen.level) == ("wakeups", Level.WARNING)
    assert f"pid {pid} (forgotten, since " in seen.what
    assert seen.todo == f"in SQL: SELECT pg_terminate_backend({pid})"

    fill(url, 0.95)
    seen = found(url)
    assert seen is not None
    assert seen.level is Level.PROBLEM

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    assert wait_for(lambda: found(url) is None, 10)
