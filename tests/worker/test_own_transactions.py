"""`complete(connection=…)` and `guard(connection=…)`: transactions that are the handler's own."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from support.store import Database
from tenure import AsyncJob, Job, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure.errors import InvalidValue, LeaseLost
from tests.worker.acts import BY, attempts, end, entries, ledger, periods, row, set_off


async def test_a_job_can_be_completed_in_a_transaction_of_its_own(
    app: Tenure, db: Database
) -> None:
    """Shows R20."""
    await ledger(db)

    @app.task
    def charge(job: Job) -> str:
        with psycopg.connect(db.url) as connection:
            connection.execute("INSERT INTO ledger VALUES ('paid')")
            job.complete(connection=connection, result="mine", reason="charged")
        return "not this"

    async with app.run():
        handle = await charge.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, ended.result, ended.done_reason) == (State.COMPLETED, "mine", "charged")
    assert (await entries(db), only.outcome) == (["paid"], AttemptOutcome.COMPLETED)


async def test_a_completion_that_was_rolled_back_did_not_happen(app: Tenure, db: Database) -> None:
    """Shows R20."""
    await ledger(db)

    @app.task(max_attempts=1)
    async def charge(job: AsyncJob) -> None:
        async with await psycopg.AsyncConnection.connect(db.url) as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")
            await job.complete(connection=connection)
            raise ValueError("roll back")

    async with app.run():
        handle = await charge.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, only.error_type) == (State.FAILED, "ValueError")
    assert await entries(db) == []


async def test_a_completion_that_was_not_committed_is_found_out(app: Tenure, db: Database) -> None:
    """The handler returned as if all were well. Shows R20."""

    @app.task(max_attempts=1)
    async def forgetful(job: AsyncJob) -> None:
        connection = await psycopg.AsyncConnection.connect(db.url)
        try:
            await job.complete(connection=connection)
        finally:
            await connection.rollback()
            await connection.close()

    async with app.run():
        handle = await forgetful.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, only.error_type) == (State.FAILED, "NotCommitted")


async def test_a_commit_is_fenced_without_completing_the_job(app: Tenure, db: Database) -> None:
    """Shows R20."""
    await ledger(db)

    @app.task
    async def steps(job: AsyncJob) -> str:
        for step in ("one", "two"):
            async with await psycopg.AsyncConnection.connect(db.url) as connection:
                await connection.execute("INSERT INTO ledger VALUES (%s)", [step])
                await job.guard(connection=connection)
        return "done"

    async with app.run():
        handle = await steps.aenqueue()
        await end(handle)

    assert (handle.result, await entries(db)) == ("done", ["one", "two"])


@pytest.mark.parametrize("verb", ["guard", "complete"])
async def test_a_commit_in_a_lost_leases_name_is_refused(
    app: Tenure, db: Database, verb: str
) -> None:
    """Shows R4. Shows R20."""
    await ledger(db)
    begun, revoked = asyncio.Event(), asyncio.Event()
    raised: list[type[BaseException]] = []

    @app.task
    async def charge(job: AsyncJob) -> None:
        begun.set()
        await revoked.wait()
        try:
            async with await psycopg.AsyncConnection.connect(db.url) as connection:
                await connection.execute("INSERT INTO ledger VALUES ('paid')")
                await getattr(job, verb)(connection=connection)
        except BaseException as error:
            raised.append(type(error))
            raise

    async with app.run():
        handle = await charge.aenqueue()
        await set_off(begun)
        await app.admin.jobs.arevoke([handle.id], BY)
        revoked.set()
        ended = await end(handle)

    assert (raised, await entries(db)) == ([LeaseLost], [])
    assert ended.state is State.CANCELLED


@pytest.mark.parametrize("verb", ["guard", "complete"])
@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
async def test_a_transaction_that_cannot_see_the_lease_taken_is_refused(
    app: Tenure, db: Database, verb: str, level: IsolationLevel
) -> None:
    """Shows R20."""
    events: list[str] = []

    @app.task
    def charge(job: Job) -> None:
        with psycopg.connect(db.url) as connection:
            connection.isolation_level = level
            connection.execute("SELECT 1")
            try:
                getattr(job, verb)(connection=connection)
            except InvalidValue as error:
                events.append(str(error))
                connection.rollback()

    async with app.run():
        ended = await end(await charge.aenqueue())

    assert ended.state is State.COMPLETED
    assert len(events) == 1
    assert "READ COMMITTED" in events[0]


@pytest.mark.parametrize("verb", ["guard", "complete"])
async def test_what_means_nothing_outside_a_transaction_is_refused_there(
    app: Tenure, db: Database, verb: str
) -> None:
    @app.task(max_attempts=1)
    async def charge(job: AsyncJob) -> None:
        async with await psycopg.AsyncConnection.connect(db.url, autocommit=True) as connection:
            await getattr(job, verb)(connection=connection)

    async with app.run():
        handle = await charge.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, only.error_type) == (State.FAILED, "InvalidValue")
    assert "needs a transaction" in (only.error_message or "")


async def test_foreign_object_is_not_a_connection(app: Tenure, db: Database) -> None:
    """Also one of the other world."""
    events: list[str] = []

    @app.task
    async def charge(job: AsyncJob) -> None:
        with psycopg.connect(db.url) as connection:
            strangers: list[Any] = [connection, "postgresql://"]
            for stranger in strangers:
                try:
                    await job.guard(connection=stranger)
                except InvalidValue as error:
                    events.append(str(error))

    async with app.run():
        await end(await charge.aenqueue())

    assert len(events) == 2


async def test_a_deadlock_in_ones_own_transaction_is_the_handlers_affair(
    app: Tenure, db: Database
) -> None:
    """What its code raises is charged; it may say Snooze itself."""

    @app.task
    async def conflict(job: AsyncJob) -> None:
        async with await psycopg.AsyncConnection.connect(db.url) as connection:
            await connection.execute(
                "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$"
            )
            await job.complete(connection=connection)

    async with app.run():
        handle = await conflict.aenqueue()
        [first] = await periods(app, handle, 1)
        now = await row(handle)

    assert (first.outcome, now.attempt) == (AttemptOutcome.FAILED, 1)
