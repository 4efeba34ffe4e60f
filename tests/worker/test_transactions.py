"""`job.transaction()`: what is written through it happens exactly once, with the completion."""

import asyncio
import threading

import psycopg
import pytest

from support.store import Database
from tenure import AsyncJob, Job, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._runtime import thread_interrupt
from tenure.errors import InvalidValue, LeaseLost
from tests.worker.acts import BY, attempts, end, entries, ledger, periods, row, set_off

FORMS = pytest.mark.parametrize("form", ["on the loop", "in a thread"])


@FORMS
async def test_what_is_written_commits_with_the_completion(
    app: Tenure, db: Database, form: str
) -> None:
    """Shows R20."""
    await ledger(db)

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")

    @app.task
    def in_thread(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("INSERT INTO ledger VALUES ('paid')")

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert await entries(db) == ["paid"]
    assert (ended.state, ended.done_reason) == (State.COMPLETED, "worker_done")
    assert (only.outcome, only.settle_repeats) == (AttemptOutcome.COMPLETED, 0)


@FORMS
async def test_what_is_written_is_gone_when_the_handler_raises(
    app: Tenure, db: Database, form: str
) -> None:
    """Shows R20."""
    await ledger(db)

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")
            raise ValueError

    @app.task
    def in_thread(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("INSERT INTO ledger VALUES ('paid')")
            raise ValueError

    async with app.run():
        task = on_loop if form == "on the loop" else in_thread
        handle = await task.using(max_attempts=1).aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert await entries(db) == []
    assert (ended.state, only.error_type) == (State.FAILED, "ValueError")


@FORMS
async def test_nothing_is_written_when_the_lease_was_taken_meanwhile(
    app: Tenure, db: Database, form: str
) -> None:
    """Shows R4. Shows R20."""
    await ledger(db)
    inside, revoked = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        try:
            async with job.transaction() as connection:
                await connection.execute("INSERT INTO ledger VALUES ('paid')")
                inside.set()
                await asyncio.to_thread(revoked.wait, 5)
        except BaseException as error:
            raised.append(error)
            raise

    @app.task
    def in_thread(job: Job) -> None:
        try:
            with job.transaction() as connection:
                connection.execute("INSERT INTO ledger VALUES ('paid')")
                inside.set()
                revoked.wait(5)
        except BaseException as error:
            raised.append(error)
            raise

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        assert await asyncio.to_thread(inside.wait, 5)
        await app.admin.jobs.arevoke([handle.id], BY)
        revoked.set()
        ended = await end(handle)

    assert await entries(db) == []
    assert [type(error) for error in raised] == [LeaseLost]
    assert (ended.state, ended.done_reason) == (State.CANCELLED, "revoked")
    [only] = await attempts(app, handle)
    assert only.outcome is AttemptOutcome.REVOKED


async def test_a_transaction_completes_the_job_and_nothing_can_follow_it(
    app: Tenure, db: Database
) -> None:
    """Shows R20."""
    await ledger(db)
    refused: list[str] = []

    @app.task
    async def twice(job: AsyncJob) -> None:
        for entry in ("first", "second"):
            try:
                async with job.transaction() as connection:
                    await connection.execute("INSERT INTO ledger VALUES (%s)", [entry])
            except InvalidValue as error:
                refused.append(str(error))

    async with app.run():
        ended = await end(await twice.aenqueue())

    assert (ended.state, await entries(db)) == (State.COMPLETED, ["first"])
    assert len(refused) == 1
    assert "already completed" in refused[0]


async def test_a_transaction_that_failed_can_be_tried_again(app: Tenure, db: Database) -> None:
    """It has settled nothing."""
    await ledger(db)

    @app.task
    def stubborn(job: Job) -> None:
        for entry in ("first", "second"):
            try:
                with job.transaction() as connection:
                    connection.execute("INSERT INTO ledger VALUES (%s)", [entry])
                    if entry == "first":
                        connection.execute("SELECT 1 / 0")
            except psycopg.errors.DivisionByZero:
                continue

    async with app.run():
        ended = await end(await stubborn.aenqueue())

    assert (ended.state, await entries(db)) == (State.COMPLETED, ["second"])


async def test_the_result_can_be_given_inside_the_transaction(app: Tenure, db: Database) -> None:
    await ledger(db)

    @app.task
    async def charge(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")
            await job.complete(connection=connection, result={"paid": 1}, reason="charged")

    async with app.run():
        ended = await end(await charge.aenqueue())

    assert (ended.result, ended.done_reason, await entries(db)) == (
        {"paid": 1},
        "charged",
        ["paid"],
    )


async def test_two_jobs_that_deadlock_both_end_and_the_loser_is_not_charged(
    app: Tenure, db: Database
) -> None:
    """Shows R20."""
    await db.fetch("CREATE TABLE account (id int PRIMARY KEY, balance int)")
    await db.fetch("INSERT INTO account VALUES (1, 0), (2, 0)")
    both = asyncio.Barrier(2)
    met: set[int] = set()

    @app.task
    async def move(job: AsyncJob, first: int, then: int) -> None:
        async with job.transaction() as connection:
            update = "UPDATE account SET balance = balance + 1 WHERE id = %s"
            await connection.execute("SET LOCAL deadlock_timeout = '50ms'")
            await connection.execute(update, [first])
            if job.id not in met:
                met.add(job.id)
                await both.wait()
            await connection.execute(update, [then])

    async with app.run():
        handles = [await move.aenqueue(1, 2), await move.aenqueue(2, 1)]
        ended = [await end(handle) for handle in handles]
        ends = [each for handle in handles for each in await attempts(app, handle)]

    assert [(each.state, each.attempt) for each in ended] == [(State.COMPLETED, 1)] * 2
    assert sorted(each.outcome for each in ends) == [
        AttemptOutcome.COMPLETED,
        AttemptOutcome.COMPLETED,
        AttemptOutcome.SNOOZED,
    ]
    assert [r["balance"] for r in await db.fetch("SELECT balance FROM account")] == [2, 2]


@FORMS
async def test_a_conflict_that_shows_at_the_commit_is_not_charged_either(
    app: Tenure, db: Database, form: str
) -> None:
    """Deferred constraints are checked there. Shows R20."""
    await ledger(db)
    await db.fetch(
        "CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40P01'; END $$"
    )
    await db.fetch(
        "CREATE CONSTRAINT TRIGGER conflict AFTER INSERT ON ledger "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION conflict()"
    )

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")

    @app.task
    def in_thread(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("INSERT INTO ledger VALUES ('paid')")

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        first, *_ = await periods(app, handle, 1)
        now = await row(handle)

    assert (first.outcome, now.attempt) == (AttemptOutcome.SNOOZED, 0)


async def test_a_result_that_cannot_be_stored_takes_the_transaction_with_it(
    app: Tenure, db: Database
) -> None:
    """Committed beside a failed job, a retry of the dead letter would write it twice. Shows R20."""
    await ledger(db)

    @app.task(max_attempts=1)
    async def charge(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await connection.execute("INSERT INTO ledger VALUES ('paid')")
            await job.complete(connection=connection, result=float("nan"))

    async with app.run():
        ended = await end(await charge.aenqueue())

    assert (ended.state, await entries(db)) == (State.FAILED, [])


async def test_a_handler_that_is_stopped_while_its_transaction_opens_ends_there(
    app: Tenure, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stop finds no connection to shut down, and no moment when it is safe to raise."""
    monkeypatch.setattr(thread_interrupt, "is_safe", lambda _frame: False)
    begun = asyncio.Event()
    locked = threading.Event()
    loop = asyncio.get_running_loop()

    @app.task(timeout=1, max_attempts=1)
    def slow(job: Job) -> None:
        loop.call_soon_threadsafe(begun.set)
        locked.wait(5)
        with job.transaction() as connection:
            connection.execute("SELECT pg_sleep(30)")

    async with app.run():
        handle = await slow.aenqueue()
        await set_off(begun)
        async with await psycopg.AsyncConnection.connect(db.url) as other:
            await other.execute("LOCK TABLE tenure.job")
            locked.set()
            await asyncio.sleep(1.5)
        ended = await end(handle, within=5)
        [only] = await attempts(app, handle)

    assert (ended.state, only.outcome) == (State.FAILED, AttemptOutcome.TIMED_OUT)


async def test_a_handler_that_is_stopped_inside_its_transaction_writes_nothing(
    app: Tenure, db: Database
) -> None:
    """Its thread waits for the server, where no exception reaches it; its socket is shut.
    Shows R19."""
    await ledger(db)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.task(timeout=0.3, max_attempts=1)
    def slow(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("INSERT INTO ledger VALUES ('paid')")
            loop.call_soon_threadsafe(begun.set)
            connection.execute("SELECT pg_sleep(30)")

    async with app.run():
        handle = await slow.aenqueue()
        await set_off(begun)
        ended = await end(handle, within=5)
        [only] = await attempts(app, handle)

    assert (ended.state, only.outcome) == (State.FAILED, AttemptOutcome.TIMED_OUT)
    assert await entries(db) == []
