"""Everything through PgBouncer in transaction mode: what works, and what continues by polling."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from support.daemons import PgBouncer
from tenure import AsyncJob, Job, Tenure  # noqa: TC001 - read by the worker
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.steps import RawSql
from tenure.admin import By, State
from tenure.admin import connect as operate
from tenure.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cluster import Cluster
    from support.store import Database
    from tenure._store.steps import Op

BY = By("ada", source="suite", reason="because")
MANY = 40


def _echo(number: int) -> int:
    return number


async def test_enqueues_of_both_worlds_at_once_and_in_bulk(app: Tenure) -> None:
    """With more clients than sessions, each statement many times: nothing is left prepared."""
    echo = app.task(name="echo")(_echo)
    for number in range(MANY):
        assert echo.using(key=str(number)).enqueue(number).created
        assert not echo.using(key=str(number)).enqueue(number).created
    await asyncio.gather(*(echo.aenqueue(number) for number in range(MANY)))
    await asyncio.gather(*(asyncio.to_thread(echo.enqueue, number) for number in range(MANY)))
    app.enqueue_many(echo.bind(number) for number in range(2500))
    assert len(app.admin.jobs.list(State.QUEUED, count=1000).jobs) == 1000


async def test_a_worker_runs_jobs_of_every_kind(
    app: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """It says once that it cannot listen, and polls."""

    @app.task(name="loop")
    async def loop(job: AsyncJob, number: int) -> int:
        await job.progress(done=1, total=2)
        return number

    @app.task(name="thread")
    def thread(job: Job, number: int) -> int:
        job.progress(cursor=number)
        return number

    handles = []
    with caplog.at_level(logging.WARNING, "tenure"):
        async with app.run(concurrency=20):
            for number in range(MANY):
                handles += [await loop.aenqueue(number), await thread.aenqueue(number)]
            for number, handle in enumerate(handles):
                await handle.wait_async(30)
                assert handle.result == number // 2
    assert [r for r in caplog.records if "not using LISTEN behind a pooler" in r.message]
    assert not [r for r in caplog.records if "failed" in r.message]


async def test_a_handlers_own_transaction_commits_with_its_job_or_not_at_all(
    app: Tenure, db: Database
) -> None:
    """Its statements are not prepared either: the next one could meet another session."""
    await db.fetch("CREATE TABLE ledger (entry integer)")

    @app.task(name="writes", max_attempts=1)
    def writes(job: Job, number: int) -> None:
        with job.transaction() as connection:
            for _ in range(8):
                connection.execute("INSERT INTO ledger VALUES (%s)", [number])
            if number % 2:
                raise ValueError("undone")

    handles = app.enqueue_many(writes.bind(number) for number in range(MANY))
    async with app.run(concurrency=10):
        for handle in handles:
            await handle.wait_async(30)
    entries = await db.fetch("SELECT entry, count(*) FROM ledger GROUP BY 1 ORDER BY 1")
    assert [(row["entry"], row["count"]) for row in entries] == [(n, 8) for n in range(0, MANY, 2)]


def test_a_callers_own_transaction_is_joined(app: Tenure, pooled: str) -> None:
    echo = app.task(name="echo")(_echo)
    with psycopg.connect(pooled, prepare_threshold=None) as connection:
        kept = echo.using(connection=connection).enqueue(1)
    with pytest.raises(ZeroDivisionError), psycopg.connect(pooled) as connection:  # noqa: PT012 - one transaction
        undone = echo.using(connection=connection).enqueue(1)
        raise ZeroDivisionError
    assert kept.get() is not None
    assert undone.get() is None


def test_a_wait_without_listen_ends_soon_after_the_job(app: Tenure) -> None:
    echo = app.task(name="echo")(_echo)
    handle = echo.enqueue(1)
    with pytest.raises(TimeoutError, match="still queued"):
        handle.wait(0.3)
    app.admin.jobs.cancel([handle.id], BY)
    handle.wait(10)


def test_our_settings_hold_in_each_transaction_and_are_left_in_no_session(pooled: str) -> None:
    def ask() -> Op[str]:
        rows = yield RawSql("SELECT current_setting('enable_seqscan') AS it, pg_sleep(0)")
        return str(rows[0]["it"])

    with connect(pooled) as connection:
        assert connection.behind_pooler
        assert Session(connection).run(ask()) == "off"
    with psycopg.connect(pooled, autocommit=True) as other:
        for _ in range(10):
            assert other.execute("SHOW enable_seqscan").fetchone() == ("on",)


def test_a_direct_connection_is_known_as_such(db: Database) -> None:
    with connect(db.url) as connection:
        assert not connection.behind_pooler
        assert connection.execute("SHOW enable_seqscan").fetchone() == ("off",)


def test_migrations_and_upkeep_work_and_what_needs_a_session_is_refused(
    empty_database: str, pgbouncer: PgBouncer
) -> None:
    url = pgbouncer.url(urlsplit(empty_database).path.removeprefix("/"))
    with operate(url, check=False) as admin:
        assert admin.schema.migrate()
        assert admin.schema.status().fits
        admin.schema.maintain()
        admin.schema.migrate(to=0)

    def alone() -> Op[None]:
        yield RawSql("SELECT pg_try_advisory_lock(1)", session=True)

    with connect(url) as connection, pytest.raises(ConfigError, match=r"pooler.*--database-url"):
        Session(connection).run(alone())


@pytest.fixture
def by_session(cluster: Cluster) -> Iterator[PgBouncer]:
    """A PgBouncer that gives a client one session for its whole life."""
    with PgBouncer(port=cluster.port, mode="session", default_pool_size=50) as server:
        yield server


async def test_worker_can_listen_through_a_session_pooler(
    db: Database, by_session: PgBouncer
) -> None:
    url = by_session.url(urlsplit(db.url).path.removeprefix("/"))
    app = Tenure(url, listen=True)
    link = app.engine.service_connection("test")
    heard = link.listen(app.engine.channel, anyway=True)
    assert await anext(heard) == ""
    app.task(name="echo", queue="mail")(_echo).enqueue(1)
    async with asyncio.timeout(20):
        while await anext(heard) != "mail":
            pass
    await heard.aclose()  # type: ignore[attr-defined]  # A generator.
    await link.close()
    app.close()


def test_url_options_refused_by_the_pooler_are_reported(cluster: Cluster, db: Database) -> None:
    with PgBouncer(port=cluster.port) as strict:
        url = strict.url(urlsplit(db.url).path.removeprefix("/"))
        with pytest.raises(Unreachable, match="ignore_startup_parameters = options"):
            connect(f"{url}?options=-c%20search_path%3Dmine")
