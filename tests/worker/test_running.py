"""`async with app.run()`: which jobs are taken, under which names, keys and leases."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from support.store import Database
from tenure import AsyncJob, Job, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue
from tests.worker.acts import BY, attempts, end, periods, row, set_off, until
from tests.worker.conftest import Apps


async def test_a_task_that_is_not_known_here_is_left_to_others_uncharged(apps: Apps) -> None:
    """A rolling deploy: the old release gives the job back, the new one runs it. Shows R13."""
    old, new = apps(), apps()

    @new.task(name="shop.new")
    async def newer() -> str:
        return "well"

    async with old.run(name="old"):
        handle = await newer.aenqueue()
        [first] = await periods(old, handle, 1)

        async def shown() -> bool:
            workers = await old.admin.workers.alist()
            return any((w.meta or {}).get("unknown_tasks") == ["shop.new"] for w in workers)

        await until(shown)
        assert (await row(handle)).state is State.QUEUED
        async with new.run(name="new"):
            ended = await end(handle)

    assert (first.outcome, ended.attempt) == (AttemptOutcome.RELEASED, 1)
    assert len(await attempts(old, handle)) == 2


async def test_an_alias_keeps_an_old_name_running(apps: Apps) -> None:
    old, new = apps(), apps()

    @old.task(name="shop.hello")
    def before(name: str) -> str:
        return name

    @new.task(name="greeting.hello", aliases=["shop.hello"])
    def after(name: str) -> str:
        return f"Hello {name}"

    handle = await before.aenqueue("Ada")
    async with new.run():
        await end(handle)

    assert handle.result == "Hello Ada"


async def test_a_task_a_call_a_queue_and_a_setting_each_say_how_long_a_lease_is(
    apps: Apps, db: Database
) -> None:
    """The strongest word counts: the call's, the task's, the queue's, the setting's. Shows R8."""
    app = apps(DEFAULTS)
    gate = asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    task = app.task(name="task", lease=40, queue="q")(wait)
    plain = app.task(name="plain", queue="q")(wait)
    other = app.task(name="other", queue="other")(wait)
    await app.admin.queues.aconfigure("q", BY, lease=timedelta(seconds=50), max_attempts=None)
    await app.admin.settings.aset("lease", 60, BY)
    handles = [
        await task.using(lease=20).aenqueue(),
        await task.aenqueue(),
        await plain.aenqueue(),
        await other.aenqueue(),
    ]
    async with app.run():

        async def leases() -> list[int]:
            found = [await row(handle) for handle in handles]
            return [
                round((each.lease_expires_at - each.claimed_at).total_seconds())
                for each in found
                if each.lease_expires_at and each.claimed_at
            ]

        async def all_running() -> bool:
            return len(await leases()) == 4

        await until(all_running)
        assert await leases() == [20, 40, 50, 60]
        gate.set()
        for handle in handles:
            await end(handle)


async def test_a_worker_names_the_lease_of_its_claims(apps: Apps) -> None:
    """It precedes the call's, the task's, the queue's and the setting's. Shows R8."""
    app = apps(DEFAULTS)
    gate = asyncio.Event()

    @app.task(lease=40)
    async def wait() -> None:
        await gate.wait()

    handle = await wait.using(lease=20).aenqueue()
    async with app.run(lease=timedelta(seconds=70)):

        async def leases() -> list[float]:
            return [round(one.length.total_seconds()) for one in await app.admin.jobs.aleases()]

        async def is_running() -> bool:
            return bool(await leases())

        await until(is_running)
        assert await leases() == [70]
        gate.set()
        await end(handle)


@pytest.mark.parametrize(("lease", "words"), [(3, "must be longer"), (90_000, "at most 1 day")])
async def test_a_lease_out_of_range_is_refused_by_a_worker(
    apps: Apps, lease: float, words: str
) -> None:
    """Shows R8."""
    with pytest.raises(InvalidValue, match=words):
        async with apps(DEFAULTS).run(lease=lease):
            pass


async def test_a_job_longer_than_its_lease_keeps_it_by_renewals(app: Tenure) -> None:
    """Three seconds of lease, and no other worker runs it. Shows R3. Shows R8."""
    runs: list[int] = []

    @app.task
    async def long(job: AsyncJob) -> int:
        runs.append(job.attempt)
        await asyncio.sleep(3.5)
        return 1

    async with app.run(), app.run():
        handle = await long.aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert (runs, only.outcome, only.late) == ([1], AttemptOutcome.COMPLETED, False)
    # At a third of the lease, a little earlier where it can share a statement.
    assert 2 <= only.renewals <= 5


async def test_a_key_makes_a_second_enqueue_a_no_op_while_the_first_job_lives(
    app: Tenure,
) -> None:
    """Shows R17."""
    gate = asyncio.Event()
    runs: list[int] = []

    @app.task
    async def once(job: AsyncJob) -> int:
        runs.append(job.id)
        await gate.wait()
        return job.id

    async with app.run():
        first = await once.using(key="k").aenqueue()
        while not runs:  # noqa: ASYNC110 - the handler says so
            await asyncio.sleep(0.01)
        second = await once.using(key="k").aenqueue()
        gate.set()
        await end(first)
        await end(second)
        third = await once.using(key="k").aenqueue()
        await end(third)

    assert (first.created, second.created, third.created) == (True, False, True)
    assert (second.id, second.result) == (first.id, first.result)
    assert runs == [first.id, third.id]


async def test_several_workers_in_one_process_share_the_work_by_the_same_rules(
    app: Tenure,
) -> None:
    """Each job runs once; at most W at a time, across them all. Shows R33."""
    runs: Counter[int] = Counter()
    now, most = 0, 0

    @app.task
    async def count(n: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        runs[n] += 1
        now -= 1

    await app.admin.queues.alimit("default", 3, BY)
    async with app.run(name="one"), app.run(name="two"), app.run(name="three"):
        handles = await app.aenqueue_many(count.bind(n) for n in range(30))
        for handle in handles:
            await end(handle)
        owners = {(await row(handle)).claimed_by for handle in handles}
        names = {worker.name for worker in await app.admin.workers.alist()}

    assert runs == Counter(range(30))
    assert most <= 3
    assert len(owners) > 1
    assert names == {"one", "two", "three"}


async def test_a_worker_takes_only_from_the_queues_it_serves(app: Tenure) -> None:
    """Without a word, those that its tasks name."""

    @app.task(queue="mail")
    async def mail() -> str:
        return "sent"

    async with app.run(queues=["default"]):
        other = await mail.using(queue="default").aenqueue()
        await end(other)
        waiting = await mail.aenqueue()
        assert (await row(waiting)).state is State.QUEUED
    async with app.run():
        await end(waiting)


async def test_a_job_that_is_too_old_to_be_worth_it_is_cancelled(app: Tenure, db: Database) -> None:
    @app.task(expires_in=60)
    async def fresh() -> None:
        raise AssertionError("not to be called")

    handle = await fresh.aenqueue()
    await db.fetch("UPDATE tenure.job SET created_at = created_at - interval '61 seconds'")
    async with app.run():
        ended = await end(handle)

    assert (ended.state, ended.done_reason) == (State.CANCELLED, "expired")


async def test_a_stop_within_longer_than_the_lease_does_not_send_the_job_round_and_round(
    app: Tenure,
) -> None:
    """Its lease would be at risk from the first instant, and the job be given back for ever."""

    @app.task(stop_within=60)
    async def slow_to_stop() -> int:
        await asyncio.sleep(0.5)
        return 1

    async with app.run(grace=0.1):
        handle = await slow_to_stop.aenqueue()
        await end(handle, within=3)
        ends = await attempts(app, handle)

    assert [each.outcome for each in ends] == [AttemptOutcome.COMPLETED]


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(app: Tenure) -> None:
    """Shows R3."""
    begun = asyncio.Event()

    @app.task
    async def blocking() -> None:
        begun.set()
        time.sleep(1.2)  # noqa: ASYNC251 - what a careless handler does

    async with app.run():
        handle = await blocking.aenqueue()
        await set_off(begun)
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, only.late) == (State.COMPLETED, False)
    assert only.renewals >= 1


async def test_a_handler_knows_how_much_of_its_timeout_is_left(apps: Apps) -> None:
    app = apps()

    async def on_loop(job: AsyncJob) -> float | None:
        return None if job.time_left is None else job.time_left.total_seconds()

    def in_thread(job: Job) -> float | None:
        return None if job.time_left is None else job.time_left.total_seconds()

    tasks: list[Any] = [
        app.task(name="loop", timeout=50)(on_loop),
        app.task(name="thread", timeout=50)(in_thread),
        app.task(name="unlimited", timeout=None)(on_loop),
    ]
    handles = [await task.aenqueue() for task in tasks]
    handles.append(await tasks[0].using(timeout=20).aenqueue())
    async with app.run():
        left = [(await end(handle)).result for handle in handles]

    assert 40 < left[0] <= 50
    assert 40 < left[1] <= 50
    assert left[2] is None
    assert 10 < left[3] <= 20
