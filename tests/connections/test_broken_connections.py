"""Connections that break, and servers that do not answer: told apart by what is known."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.cluster import Cluster
from support.store import A, Database, install, lanes
from tenure._model.job import NewJob
from tenure._rules import payload
from tenure._store.postgres import service_connection
from tenure._store.postgres.connections import aconnect, connect
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure.errors import LeaseLost, OutcomeUnknown, QueryFailed, StoreError, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenure._store.postgres.connections import AsyncDetectingConnection

SHORT = timedelta(milliseconds=100)
KEYED = NewJob("task", key="k")
PLAIN = NewJob("task")


@pytest.fixture
async def busy_key(db: Database) -> AsyncIterator[None]:
    """A caller's transaction that holds the key `k`, so that an enqueue of it waits."""
    caller = await db.caller("caller")
    async with caller.transaction() as session:
        await session.run(db.store.jobs.enqueue([KEYED]))
        yield


async def impatient(db: Database) -> AsyncSession:
    return AsyncSession(await aconnect(db.url, name="impatient"), deadline=SHORT)


async def terminate(db: Database, name: str) -> None:
    rows = await db.fetch(
        "SELECT pg_terminate_backend(pid, 10000) AS gone FROM pg_stat_activity "
        "WHERE application_name = $1",
        name,
    )
    assert [row["gone"] for row in rows] == [True]


async def test_a_statement_past_its_deadline_shuts_the_socket_and_is_unknown(
    db: Database, busy_key: None
) -> None:
    """Shows R18."""
    session = await impatient(db)
    with pytest.raises(OutcomeUnknown, match="enqueue_keyed: the connection broke"):
        await session.run(db.store.jobs.enqueue([KEYED]))

    assert session._connection.broken
    with pytest.raises(Unreachable):
        await session.run(db.store.settings.changed())


async def test_a_deadline_within_a_transaction_means_that_nothing_was_done(
    db: Database, busy_key: None
) -> None:
    """Shows R18."""
    session = await impatient(db)
    with pytest.raises(Unreachable, match="nothing was changed"):
        await session.run(db.store.jobs.enqueue([PLAIN, KEYED]))

    assert session._connection.broken


async def test_a_statement_within_its_deadline_is_left_alone(db: Database) -> None:
    session = await impatient(db)
    await session.run(db.store.jobs.enqueue([PLAIN]))
    [row] = await db.fetch("SELECT count(*) AS jobs FROM tenure.job")

    assert row["jobs"] == 1
    assert not session._connection.closed
    await session._connection.close()


async def test_a_connection_terminated_during_a_statement_is_broken_not_refused(
    db: Database, busy_key: None
) -> None:
    party = await db.party("victim")
    task = asyncio.create_task(party.run(db.store.jobs.enqueue([KEYED])))
    await db.until_blocked("victim")
    await terminate(db, "victim")

    with pytest.raises((OutcomeUnknown, Unreachable)):
        await task
    assert party.connection.broken


async def test_a_connection_terminated_between_statements_is_broken_not_refused(
    db: Database,
) -> None:
    party = await db.party("victim")
    await party.run(db.store.settings.changed())
    await terminate(db, "victim")

    with pytest.raises((OutcomeUnknown, Unreachable)):
        await party.run(db.store.jobs.enqueue([PLAIN]))
    assert party.connection.broken
    with pytest.raises(StoreError):
        await party.run(db.store.settings.changed())


async def test_a_sync_connection_terminated_between_statements_is_broken_not_refused(
    db: Database,
) -> None:
    with connect(db.url, name="victim") as connection:
        session = Session(connection)
        session.run(db.store.settings.changed())
        await terminate(db, "victim")

        with pytest.raises((OutcomeUnknown, Unreachable)):
            session.run(db.store.jobs.enqueue([PLAIN]))
        assert connection.broken


async def test_a_refused_statement_leaves_the_connection_as_good_as_before(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload, "check", lambda _job: None)
    party = await db.party("refused")
    with pytest.raises(QueryFailed) as refusal:
        await party.run(db.store.jobs.enqueue([NewJob("task", delay=timedelta.max)]))

    assert refusal.value.statement == "enqueue_alike"
    assert refusal.value.is_data_error
    assert len(await party.run(db.store.jobs.enqueue([PLAIN]))) == 1


async def test_a_lost_lease_leaves_no_transaction_behind(db: Database) -> None:
    """Shows R4."""
    await db.run(db.store.jobs.enqueue([PLAIN]))
    claims = await db.run(db.store.leases.claim(lanes("default"), count=1, worker=A))
    lease = claims.jobs[0].lease
    db.clock.advance(lease.ttl)
    party = await db.party("late")
    with pytest.raises(LeaseLost):
        await party.run(db.store.leases.progress(lease, done=1))

    assert party.connection.info.transaction_status.name == "IDLE"
    assert (await party.run(db.store.leases.rescue())).found == 1


async def test_read_only_server_is_reported_with_what_to_check(db: Database) -> None:
    read_only = db.url + "?options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(Unreachable, match=r"writable.*not a standby"):
        await aconnect(read_only)
    with pytest.raises(Unreachable, match=r"writable.*not a standby"):
        connect(read_only)


async def test_server_that_is_down_is_reported_with_what_to_check(
    pytestconfig: pytest.Config,
) -> None:
    with Cluster(pytestconfig.getoption("--postgres")) as cluster:
        install(cluster.url())
        db = Database(cluster.url())
        party = await db.party("orphan")
        await party.run(db.store.jobs.enqueue([PLAIN]))
        cluster.kill()

        with pytest.raises((OutcomeUnknown, Unreachable)):
            await party.run(db.store.jobs.enqueue([PLAIN]))
        with pytest.raises(Unreachable, match="check that the server runs"):
            await aconnect(db.url)
        with pytest.raises(Unreachable, match="check that the server runs"):
            connect(db.url)
        await db.close()


async def test_a_connection_that_is_closed_while_it_connects_stays_closed(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shutdown closes it, and asyncio may lose the cancel of the one who waits for it."""
    connected, closed = asyncio.Event(), asyncio.Event()

    async def slowly(url: str, **options: str) -> AsyncDetectingConnection:
        connection = await aconnect(url, **options)
        connected.set()
        await closed.wait()
        return connection

    monkeypatch.setattr(service_connection, "aconnect", slowly)
    link = service_connection.PostgresServiceConnection(
        db.url, schema="tenure", name="late", deadline=None
    )
    opening = asyncio.create_task(link.open())
    await connected.wait()
    await link.close()
    closed.set()
    with pytest.raises(Unreachable, match="late: closed while connecting"):
        await opening
    rows = await db.fetch("SELECT FROM pg_stat_activity WHERE application_name = 'late'")
    assert rows == []
