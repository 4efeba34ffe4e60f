"""`job.enqueue`: what follows from a job is enqueued with its completion, both or neither."""

from typing import Any

import psycopg
import pytest

from support.store import Database
from tenure import AsyncJob, GiveUp, Job, Tenure
from tenure._model.job import State
from tenure.errors import InvalidValue, PayloadError
from tests.worker.acts import end, periods, row


async def tasks(db: Database) -> list[str]:
    """The names of all jobs there are, ended or not."""
    found = await db.fetch(
        "SELECT task FROM tenure.job UNION ALL SELECT task FROM tenure.job_archive "
        "UNION ALL SELECT task FROM tenure.job_failed ORDER BY 1"
    )
    return [each["task"] for each in found]


async def test_what_follows_is_enqueued_when_the_handler_has_returned(
    app: Tenure, db: Database
) -> None:
    @app.task(name="second", queue="elsewhere")
    async def second(n: int) -> int:
        return n

    @app.task(name="first")
    def first(job: Job) -> str:
        job.enqueue(second.bind(1), second.bind(2))
        return "done"

    async with app.run(queues=["default"]):
        handle = await first.aenqueue()
        await end(handle)

    assert handle.result == "done"
    assert await tasks(db) == ["first", "second", "second"]


async def test_what_would_have_followed_from_a_failure_is_not_enqueued(
    app: Tenure, db: Database
) -> None:
    @app.task(name="second")
    async def second() -> None: ...

    @app.task(name="first")
    async def first(job: AsyncJob) -> None:
        job.enqueue(second.bind())
        raise GiveUp

    async with app.run():
        await end(await first.aenqueue())

    assert await tasks(db) == ["first"]


async def test_what_follows_is_enqueued_with_the_jobs_own_transaction(
    app: Tenure, db: Database
) -> None:
    @app.task(name="second", queue="elsewhere")
    async def second() -> None: ...

    @app.task(name="first")
    async def first(job: AsyncJob) -> None:
        async with job.transaction():
            job.enqueue(second.bind())

    async with app.run(queues=["default"]):
        ended = await end(await first.aenqueue())

    assert ended.state is State.COMPLETED
    assert await tasks(db) == ["first", "second"]


async def test_what_follows_is_enqueued_when_a_report_reaches_the_target(
    app: Tenure, db: Database
) -> None:
    """That report is the job's completion. Shows R23."""

    @app.task(name="second", queue="elsewhere")
    async def second() -> None: ...

    @app.task(name="first")
    async def first(job: AsyncJob) -> None:
        job.enqueue(second.bind())
        await job.progress(items={"a": 1})

    async with app.run(queues=["default"]):
        ended = await end(await first.using(target=1).aenqueue())

    assert (ended.state, ended.done_reason) == (State.COMPLETED, "target_reached")
    assert await tasks(db) == ["first", "second"]


async def test_nothing_can_follow_once_the_job_is_completed(app: Tenure, db: Database) -> None:
    """Silence here would be a lost job."""
    refused: list[InvalidValue] = []

    @app.task(name="second")
    async def second() -> None: ...

    @app.task(name="first")
    async def first(job: AsyncJob) -> None:
        async with job.transaction():
            pass
        try:
            job.enqueue(second.bind())
        except InvalidValue as error:
            refused.append(error)

    async with app.run():
        await end(await first.aenqueue())

    assert len(refused) == 1


async def test_nothing_can_follow_once_it_was_completed_in_ones_own_transaction(
    app: Tenure, db: Database
) -> None:
    """The completion is sent; what is added after it is in no transaction."""
    refused: list[InvalidValue] = []

    @app.task(name="second")
    async def second() -> None: ...

    @app.task(name="first")
    def first(job: Job) -> None:
        with psycopg.connect(db.url) as connection:
            job.complete(connection=connection)
            try:
                job.enqueue(second.bind())
            except InvalidValue as error:
                refused.append(error)

    async with app.run():
        await end(await first.aenqueue())

    assert len(refused) == 1


@pytest.mark.parametrize("value", ["\x00", float("nan"), object(), "x" * 300_000])
async def test_a_follow_up_that_cannot_be_stored_fails_the_job_and_no_other(
    app: Tenure, db: Database, value: Any
) -> None:
    """It would be sent again and again, with the lease renewed for ever."""
    events: list[PayloadError] = []

    @app.task(name="second")
    async def second(value: Any) -> None: ...

    @app.task(name="first", max_attempts=1)
    async def first(job: AsyncJob) -> None:
        try:
            job.enqueue(second.bind(value))
        except PayloadError as error:
            events.append(error)
            raise

    @app.task(name="other")
    async def other(job: AsyncJob) -> None:
        job.enqueue(second.bind("fine"))

    async with app.run(grace=0.1):
        bad = await first.aenqueue()
        good = await other.aenqueue()
        await end(good, within=3)
        [only] = await periods(app, bad, 1, within=3)
        ended = await row(bad)

    assert ended.state is State.FAILED
    assert events or only.error_type
