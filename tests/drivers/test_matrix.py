"""Each driver whose transactions can be joined, through what must hold there. Together with
`test_killed`, this is the table of docs/reference/drivers.md."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.drivers import DRIVERS
from tenure import AsyncJob, Job  # noqa: TC001 - a worker reads the annotations
from tenure._model.job import State
from tenure.admin import By
from tenure.errors import LeaseLost
from tests.drivers.conftest import committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.drivers import Driver, Opened
    from tenure import Handle, Tenure

every_driver = pytest.mark.parametrize("driver", DRIVERS, ids=[d.name for d in DRIVERS])
WRITE = "INSERT INTO ledger VALUES ('paid')"
DEADLINE = 15.0


class Never(Exception):
    """What a user's own code raises."""


async def enqueue(
    driver: Driver, app: Tenure, url: str, look: Callable[[], None], write: str | None = WRITE
) -> None:
    """Write a line and enqueue two jobs, one with a key; then look, before the commit."""

    @app.task
    def hello() -> None: ...

    def sync(opened: Opened) -> None:
        with opened as (connection, say):
            if write:
                say(write)
            hello.using(connection=connection).enqueue()
            hello.using(connection=connection, key="one").enqueue()
            look()

    if driver.opened is not None:
        await asyncio.to_thread(sync, driver.opened(url))
    elif driver.aopened is not None:
        async with driver.aopened(url) as (connection, tell):
            if write:
                await tell(write)
            await hello.using(connection=connection).aenqueue()
            await hello.using(connection=connection, key="one").aenqueue()
            look()


def think_better_of_it() -> None:
    raise Never


def settling(
    driver: Driver, app: Tenure, url: str, verb: str, meanwhile: Callable[[int], object]
) -> Any:
    """A task whose handler writes a line and completes or guards in the same transaction."""
    if driver.opened is not None:
        opened = driver.opened

        @app.task(max_attempts=1)
        def charge(job: Job) -> None:
            with opened(url) as (connection, say):
                say(WRITE)
                meanwhile(job.id)
                getattr(job, verb)(connection=connection)

        return charge
    assert driver.aopened is not None
    aopened = driver.aopened

    @app.task(max_attempts=1)
    async def acharge(job: AsyncJob) -> None:
        async with aopened(url) as (connection, tell):
            await tell(WRITE)
            await asyncio.to_thread(meanwhile, job.id)
            await getattr(job, verb)(connection=connection)

    return acharge


async def end(handle: Handle[Any]) -> State:
    """How the job ended."""
    await handle.wait_async(DEADLINE)
    row = await handle.aget()
    assert row is not None
    return row.state


@every_driver
async def test_an_enqueue_commits_with_the_callers_writes(
    driver: Driver, app: Tenure, url: str
) -> None:
    before: list[tuple[int, int]] = []
    await enqueue(driver, app, url, lambda: before.append(committed(url)))
    assert (before, committed(url)) == ([(0, 0)], (1, 2))


@every_driver
async def test_an_enqueue_rolls_back_with_the_callers_writes(
    driver: Driver, app: Tenure, url: str
) -> None:
    with pytest.raises(Never):
        await enqueue(driver, app, url, think_better_of_it)
    assert committed(url) == (0, 0)


@every_driver
async def test_an_enqueue_as_the_first_word_of_a_transaction_is_part_of_it(
    driver: Driver, app: Tenure, url: str
) -> None:
    """Some drivers begin the server's transaction with the first statement they know of."""
    with pytest.raises(Never):
        await enqueue(driver, app, url, think_better_of_it, write=None)
    assert committed(url) == (0, 0)


@every_driver
async def test_a_completion_commits_with_the_handlers_writes(
    driver: Driver, app: Tenure, url: str
) -> None:
    """Shows R20."""
    charge = settling(driver, app, url, "complete", lambda _id: None)
    async with app.run():
        state = await end(await charge.aenqueue())
    assert (state, committed(url)) == (State.COMPLETED, (1, 0))


@every_driver
async def test_a_guarded_commit_leaves_the_job_running(
    driver: Driver, app: Tenure, url: str
) -> None:
    """Shows R20."""
    charge = settling(driver, app, url, "guard", lambda _id: None)
    async with app.run():
        state = await end(await charge.aenqueue())
    assert (state, committed(url)) == (State.COMPLETED, (1, 0))


@every_driver
@pytest.mark.parametrize("verb", ["complete", "guard"])
async def test_a_lost_lease_rolls_the_handlers_writes_back(
    driver: Driver, app: Tenure, url: str, verb: str
) -> None:
    """The lease is taken while the transaction is open. Shows R4. Shows R20."""
    by = By("ada", reason="a test")
    charge = settling(driver, app, url, verb, lambda job_id: app.admin.jobs.revoke([job_id], by))
    handler = charge.definition.function
    raised: list[type[BaseException]] = []

    async def awatched(job: AsyncJob) -> None:
        try:
            await handler(job)
        except BaseException as error:
            raised.append(type(error))
            raise

    def watched(job: Job) -> None:
        try:
            handler(job)
        except BaseException as error:
            raised.append(type(error))
            raise

    watch = app.task(name="watched")(awatched if driver.aopened else watched)
    async with app.run():
        state = await end(await watch.aenqueue())
    assert (raised, state, committed(url)) == ([LeaseLost], State.CANCELLED, (0, 0))
