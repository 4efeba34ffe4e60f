"""Who rings: every commit of ours that enqueued, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure import AsyncJob, Job, Tenure  # noqa: TC001 - read by the worker
from tenure.admin import By

if TYPE_CHECKING:
    from support.daemons import Redis
    from support.store import Database
    from tests.redis.conftest import Apps, Ear

BY = By("ada", source="suite", reason="because")


@pytest.fixture
def app(apps: Apps, redis: Redis) -> Tenure:
    """An app with one task."""
    app = apps(redis.url)
    app.task(name="work")(_work)
    return app


def _work() -> None:
    """Nothing."""


async def test_an_enqueue_rings_in_both_worlds(app: Tenure, ear: Ear) -> None:
    work = app.task(name="mail", queue="mail")(_work)
    work.enqueue()
    assert await ear.all(app) == ["mail"]
    await work.using(queue="other", key="k").aenqueue()
    assert await ear.all(app) == ["other"]


async def test_many_at_once_ring_once_for_each_queue(app: Tenure, ear: Ear) -> None:
    work = app.task(name="many")(_work)
    app.enqueue_many(work.using(queue=f"q{n % 3}").bind() for n in range(2500))
    assert await ear.all(app) == ["q0", "q1", "q2"]


async def test_an_operators_enqueue_rings(app: Tenure, ear: Ear) -> None:
    app.admin.jobs.enqueue("work", {}, BY, queue="mail")
    assert await ear.all(app) == ["mail"]


async def test_a_follow_up_rings_when_the_job_that_it_follows_is_settled(
    app: Tenure, ear: Ear
) -> None:
    next_one = app.task(name="next", queue="elsewhere")(_work)

    @app.task(name="first")
    async def first(job: AsyncJob) -> None:
        job.enqueue(next_one.bind())

    handle = first.enqueue()
    async with app.run(queues=["default"]):
        assert (await handle.wait_async(15)) is not None
    assert "elsewhere" in await ear.all(app)


async def test_a_handlers_own_transaction_rings_at_its_commit_alone(app: Tenure, ear: Ear) -> None:
    work = app.task(name="inner")(_work)

    @app.task(name="commits")
    def commits(job: Job) -> None:
        with job.transaction() as connection:
            work.using(connection=connection, queue="committed").enqueue()

    @app.task(name="rolls_back", max_attempts=1)
    async def rolls_back(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await work.using(connection=connection, queue="undone").aenqueue()
            raise ValueError("undone")

    handles = [commits.enqueue(), rolls_back.enqueue()]
    async with app.run(queues=["default"]):
        for handle in handles:
            await handle.wait_async(15)
    heard = await ear.all(app)
    assert "committed" in heard
    assert "undone" not in heard


async def test_a_callers_commit_is_not_seen_and_does_not_ring(
    app: Tenure, ear: Ear, db: Database
) -> None:
    """PostgreSQL's own wakeup goes out with it, or the poll finds it."""
    work = app.task(name="callers")(_work)
    with psycopg.connect(db.url) as connection:
        work.using(connection=connection).enqueue()
    assert await ear.all(app) == []


async def test_what_enqueues_nothing_does_not_ring(app: Tenure, ear: Ear) -> None:
    app.admin.queues.list()
    await app.admin.queues.apause("mail", BY)
    assert await ear.all(app) == []
