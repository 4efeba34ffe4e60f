"""Operations that are cut off: nothing acknowledged afterwards may hang on what they left open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.cluster import Cluster
from support.databases import Databases
from support.store import A, Database, install, lanes
from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.job import NewJob
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure.errors import InvalidValue, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def test_a_report_cancelled_behind_a_lock_gives_its_connection_up(db: Database) -> None:
    """What came next would join its transaction, be answered, and never be committed."""
    await db.run(db.store.jobs.enqueue([NewJob("t", "q")]))
    [claimed] = (await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A))).jobs
    holder, worker = await db.party("holder"), await db.party("worker")

    async with holder.transaction() as tx:
        await tx.run(db.store.leases.guard(claimed.lease))
        await holder.connection.execute("SELECT 1 FROM tenure.job FOR UPDATE")
        report = asyncio.create_task(worker.run(db.store.leases.progress(claimed.lease, done=1)))
        await db.until_blocked("worker")
        report.cancel()
        with pytest.raises(asyncio.CancelledError):
            await report

    with pytest.raises(Unreachable):
        await worker.run(db.store.jobs.enqueue([NewJob("t", "q")]))


async def test_a_statement_that_is_cancelled_again_and_again_ends_before_its_connection(
    db: Database,
) -> None:
    """As anyio cancels. A statement that outlived its connection stopped the event loop."""
    worker = await db.party("worker")
    holder = await db.party("holder")
    async with holder.transaction():
        await holder.connection.execute("LOCK TABLE tenure.job")
        others = asyncio.all_tasks()
        read = asyncio.create_task(worker.run(db.store.jobs.get(JobId(1))))
        await db.until_blocked("worker")
        while not read.done():
            read.cancel()
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == others
    assert read.cancelled()


async def test_a_defect_inside_a_transaction_gives_the_connection_up(db: Database) -> None:
    [job] = await db.run(db.store.jobs.enqueue([NewJob("t", "q")]))
    with connect(db.url) as connection:
        session = Session(connection)
        with pytest.raises(TypeError):
            session.run(
                db.store.job_commands.hold([job.id], By("me", reason=cast("Any", object())))
            )
        assert connection.closed
        with pytest.raises(Unreachable):
            session.run(db.store.jobs.enqueue([NewJob("t", "q")]))


async def test_a_guard_outside_a_transaction_is_refused_with_what_to_do(db: Database) -> None:
    """Its lock would be gone at once, and the commit it was for unfenced. Shows R20."""
    await db.run(db.store.jobs.enqueue([NewJob("t", "q")]))
    [claimed] = (await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A))).jobs
    with pytest.raises(InvalidValue, match="open one first"):
        await db.run(db.store.leases.guard(claimed.lease))


@pytest.fixture
async def unconfirmed() -> AsyncIterator[Database]:
    """A server whose commits wait for a standby that never comes."""
    with Cluster(15) as cluster:
        databases = Databases(cluster)
        database = Database(databases.create(databases.template("tenure", install)))
        await database.fetch("ALTER SYSTEM SET synchronous_standby_names = 'ghost'")
        await database.fetch("SELECT pg_reload_conf()")
        yield database
        await database.close()


async def test_a_cancelled_task_sends_no_cancel_into_a_commit(unconfirmed: Database) -> None:
    """A cancel would end the wait for the standby, and show what no standby has."""
    db = unconfirmed
    worker = await db.party("worker")
    enqueue = asyncio.create_task(worker.run(db.real.jobs.enqueue([NewJob("t", "q")])))
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    async with asyncio.timeout(10):
        while True:
            if await db.fetch(waits):
                break
            await asyncio.sleep(0.01)

    enqueue.cancel()
    with pytest.raises(asyncio.CancelledError):
        await enqueue

    assert await db.fetch("SELECT id FROM tenure.job") == []
