"""Leaving the block: no new work, the running may end, the rest goes back where it was."""

import asyncio
import time

import pytest

from support.store import Database
from tenure import Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.worker import WorkerState
from tests.worker.acts import BY, attempts, row, set_off, until


async def test_what_runs_may_end_within_the_grace_and_nothing_new_begins(app: Tenure) -> None:
    """Shows R31."""
    begun, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> str:
        begun.set()
        await go.wait()
        return "done"

    async with app.run(concurrency=1):
        running = await work.aenqueue()
        await set_off(begun)
        waiting = await work.aenqueue()
        asyncio.get_running_loop().call_later(0.2, go.set)

    assert (await row(running)).state is State.COMPLETED
    left = await row(waiting)
    assert (left.state, left.attempt) == (State.QUEUED, 0)
    [worker] = await app.admin.workers.alist()
    assert (worker.state, worker.running) == (WorkerState.OFFLINE, 0)


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_what_does_not_end_within_the_grace_is_stopped_and_given_back(
    app: Tenure, form: str
) -> None:
    """Uncharged, and runnable at once. Shows R31."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.task
    async def on_loop() -> None:
        begun.set()
        await asyncio.sleep(30)

    @app.task
    def in_thread() -> None:
        loop.call_soon_threadsafe(begun.set)
        for _ in range(3000):
            time.sleep(0.01)

    async with app.run(grace=0.4):
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        await set_off(begun)
        left_at = time.monotonic()
    took = time.monotonic() - left_at

    now = await row(handle)
    [only] = await attempts(app, handle)
    assert took < 3
    assert (now.state, now.attempt, only.outcome) == (State.QUEUED, 0, AttemptOutcome.RELEASED)


async def test_a_lease_is_renewed_while_draining(app: Tenure) -> None:
    """Shows R3. Shows R31."""
    begun = asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        await asyncio.sleep(1.5)

    async with app.run():
        handle = await work.aenqueue()
        await set_off(begun)

    [only] = await attempts(app, handle)
    assert only.outcome is AttemptOutcome.COMPLETED
    assert only.renewals >= 1


async def test_a_claim_that_was_under_way_when_the_worker_left_starts_nothing(
    app: Tenure, db: Database
) -> None:
    """Two actors: the claim waits behind an operator who has the queue's row; the worker leaves.
    What the claim brings is given back, not begun beside a worker that is gone. Shows R31."""
    begun: list[int] = []

    @app.task
    async def work() -> None:
        begun.append(1)

    await app.admin.queues.alimit("default", 5, BY)
    handle = await work.aenqueue()
    operator = await db.caller("operator")
    run = app.run(name="leaver", grace=1)
    async with operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.queue FOR UPDATE")
        await run.__aenter__()
        await db.until_blocked("tenure leaver claimer")
        leaving = asyncio.create_task(run.__aexit__(None, None, None))
        await until_draining(app)
    async with asyncio.timeout(10):
        await leaving

    now = await row(handle)
    assert begun == []
    assert (now.state, now.attempt) == (State.QUEUED, 0)


async def until_draining(app: Tenure) -> None:
    """Return once the worker says that it drains, or is gone."""

    async def given() -> bool:
        return any(w.state is not WorkerState.ACTIVE for w in await app.admin.workers.alist())

    await until(given)


async def test_draining_worker_claims_nothing(app: Tenure) -> None:
    """By an operator, through its row. Shows R31."""

    @app.task
    async def work() -> int:
        return 1

    async with app.run():
        found = await until(app.admin.workers.alist)
        await app.admin.workers.adrain(found[0].id, BY)
        await until_draining(app)
        handle = await work.aenqueue()
        async with app.run(queues=["elsewhere"], name="witness"):
            pass
        now = await row(handle)

    assert (now.state, now.attempt) == (State.QUEUED, 0)


async def test_an_error_in_the_block_drains_too(app: Tenure) -> None:
    begun = asyncio.Event()

    @app.task
    async def work() -> str:
        begun.set()
        await asyncio.sleep(0.1)
        return "done"

    async def block() -> None:
        async with app.run():
            await work.aenqueue()
            await set_off(begun)
            raise ValueError("outside")

    with pytest.raises(ValueError, match="outside"):
        await block()

    [job] = (await app.admin.jobs.alist(State.COMPLETED)).jobs
    assert job.result == "done"


async def test_no_connection_and_no_task_stays_behind(app: Tenure, db: Database) -> None:
    """However often one comes and goes."""

    @app.task
    async def work() -> int:
        return 1

    for n in range(5):
        async with app.run(name=f"turn {n}"):
            if n % 2:
                handle = await work.aenqueue()
                await handle.wait_async(5)
    await app.aclose()

    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []

    async def gone() -> bool:
        return not await db.fetch(
            "SELECT FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'tenure%'"
        )

    await until(gone)
