"""Reports: the cursor a job resumes from, its items and target, and the lease they extend."""

import asyncio
from datetime import timedelta

import pytest

from support.store import Database
from tenure import AsyncJob, Backoff, Job, Tenure
from tenure._model.job import State
from tests.worker.acts import BY, attempts, end, row, until

AT_ONCE = Backoff(base=timedelta(0))


async def test_failed_job_continues_from_its_last_cursor(app: Tenure) -> None:
    """Shows R21. Shows R22."""
    begun_at: list[object] = []

    @app.task(backoff=AT_ONCE)
    async def walk(job: AsyncJob) -> object:
        begun_at.append(job.cursor)
        start = job.cursor["page"] if job.cursor else 0
        for page in range(start + 1, 5):
            await job.progress(cursor={"page": page}, done=page, total=4, message=f"page {page}")
            if page == 2 and job.attempt == 1:
                raise ValueError("half way")
        return job.cursor

    async with app.run():
        handle = await walk.aenqueue()
        ended = await end(handle)

    assert begun_at == [None, {"page": 2}]
    assert handle.result == {"page": 4}
    assert ended.cursor == {"page": 4}
    assert (ended.progress["done"], ended.progress["total"]) == (4, 4)


async def test_a_report_extends_the_lease(app: Tenure, db: Database) -> None:
    """Also from a thread. Shows R21."""

    @app.task
    def work(job: Job) -> list[float]:
        ends = []
        for n in range(2):
            job.progress(done=n)
            found = app.engine.run(app.engine.store.jobs.get(job.id))
            assert found is not None
            assert found.lease_expires_at is not None
            ends.append(found.lease_expires_at.timestamp())
        return ends

    async with app.run():
        handle = await work.aenqueue()
        ended = await end(handle)

    first, second = handle.result
    assert ended.claimed_at is not None
    assert first - ended.claimed_at.timestamp() > 3
    assert second > first


async def test_items_are_counted_once_by_key_and_kept_with_the_job(app: Tenure) -> None:
    """Shows R23."""
    counted: list[int] = []

    @app.task(backoff=AT_ONCE)
    async def collect(job: AsyncJob) -> str:
        counted.append(await job.progress(items={"a": 1, "b": 2}))
        counted.append(await job.progress(items={"b": 20, "c": 3}))
        if job.attempt == 1:
            raise ValueError
        return "done"

    async with app.run():
        handle = await collect.aenqueue()
        ended = await end(handle)

    assert counted == [2, 3, 3, 3]
    assert (ended.items, ended.done_reason) == (3, "worker_done")
    assert await app.admin.jobs.aitems(handle.id) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_the_report_that_reaches_the_target_completes_the_job_and_ends_the_handler(
    app: Tenure, form: str
) -> None:
    """`except Exception` does not hold it. Shows R23."""
    after: list[str] = []

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        try:
            await job.progress(items={"a": 1})
            await job.progress(items={"a": 1, "b": 2, "c": 3})
        except Exception:  # noqa: BLE001 - as handlers do
            after.append("caught")
        after.append("continued")

    @app.task
    def in_thread(job: Job) -> None:
        try:
            job.progress(items={"a": 1})
            job.progress(items={"a": 1, "b": 2, "c": 3})
        except Exception:  # noqa: BLE001 - as handlers do
            after.append("caught")
        after.append("continued")

    async with app.run():
        task = on_loop if form == "on the loop" else in_thread
        handle = await task.using(target=2).aenqueue()
        ended = await end(handle)
        ends = await attempts(app, handle)

    assert after == []
    assert (ended.state, ended.done_reason, ended.items) == (State.COMPLETED, "target_reached", 3)
    assert len(ends) == 1


async def test_a_job_may_say_why_there_is_no_more_to_do(app: Tenure) -> None:
    """Shows R23."""

    @app.task
    async def collect(job: AsyncJob) -> object:
        await job.progress(items={"a": 1})
        return job.finished("no_more_results", {"pages": 1})

    async with app.run():
        handle = await collect.using(target=100).aenqueue()
        ended = await end(handle)

    assert (ended.state, ended.done_reason) == (State.COMPLETED, "no_more_results")
    assert ended.result == {"pages": 1}


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_a_job_reports_its_last_items_with_its_end(app: Tenure, form: str) -> None:
    """Shows R23."""

    @app.task
    async def on_loop(job: AsyncJob) -> object:
        await job.progress(cursor=1, items={"a": 1})
        return job.finished("no_more_results", {"pages": 2}, cursor=2, items={"a": 9, "b": 2})

    @app.task
    def in_thread(job: Job) -> object:
        job.progress(cursor=1, items={"a": 1})
        job.enqueue(on_loop.using(queue="elsewhere").bind())
        return job.finished("no_more_results", {"pages": 2}, cursor=2, items={"a": 9, "b": 2})

    task = on_loop if form == "on the loop" else in_thread
    async with app.run(queues=["default"]):
        handle = await task.aenqueue()
        ended = await end(handle)

    assert (ended.state, ended.done_reason) == (State.COMPLETED, "no_more_results")
    assert (ended.result, ended.cursor, ended.items) == ({"pages": 2}, 2, 2)
    assert await app.admin.jobs.aitems(handle.id) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("report", "words"),
    [({"items": {"": 1}}, "an item's key"), ({"cursor": {1, 2}}, "the cursor")],
)
async def test_a_handler_sees_that_its_last_report_cannot_be_stored(
    app: Tenure, report: dict[str, object], words: str
) -> None:
    @app.task(max_attempts=1)
    async def collect(job: AsyncJob) -> object:
        return job.finished("done", **report)  # type: ignore[arg-type]  # That is what it tests.

    async with app.run():
        handle = await collect.aenqueue()
        ended = await end(handle)
        [attempt] = await attempts(app, handle)

    assert ended.state is State.FAILED
    assert words in (attempt.error_message or "")


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_a_report_names_how_long_the_lease_lasts(app: Tenure, form: str) -> None:
    """Its worker's renewals, after a third of three seconds, leave it as it is. Shows R21."""

    async def remaining(job_id: int) -> float:
        [lease] = [one for one in await app.admin.jobs.aleases() if one.job_id == job_id]
        return lease.remaining.total_seconds()

    released = asyncio.Event()

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        await job.progress(extend=timedelta(minutes=10))
        await released.wait()

    @app.task
    def in_thread(job: Job) -> None:
        job.progress(extend=600)
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result()

    loop = asyncio.get_running_loop()
    task = on_loop if form == "on the loop" else in_thread
    async with app.run():
        handle = await task.aenqueue()

        async def renewed_twice() -> bool:
            leases = await app.admin.jobs.aleases()
            return any(one.renewals >= 2 for one in leases)

        await until(renewed_twice)
        assert 580 < await remaining(handle.id) <= 600
        released.set()
        ended = await end(handle)
    assert ended.state is State.COMPLETED


@pytest.mark.parametrize("extend", [0, -1, timedelta(days=2), "soon"])
async def test_an_extension_out_of_range_is_refused(app: Tenure, extend: object) -> None:
    @app.task(max_attempts=1)
    async def work(job: AsyncJob) -> None:
        await job.progress(extend=extend)  # type: ignore[arg-type]  # That is what it tests.

    async with app.run():
        handle = await work.aenqueue()
        await end(handle)
        [attempt] = await attempts(app, handle)
    assert attempt.error_type == "InvalidValue"
    assert "extend must be" in (attempt.error_message or "")


async def test_a_report_in_a_lost_leases_name_is_refused_and_ends_the_handler(app: Tenure) -> None:
    """Shows R4."""
    continued: list[bool] = []
    revoked = asyncio.Event()

    @app.task
    async def work(job: AsyncJob) -> None:
        await revoked.wait()
        await job.progress(cursor=1)
        continued.append(True)

    async with app.run():
        handle = await work.aenqueue()

        async def running() -> bool:
            return (await row(handle)).state is State.RUNNING

        await until(running)
        await app.admin.jobs.arevoke([handle.id], BY)
        revoked.set()
        ended = await end(handle)

    assert (ended.state, ended.cursor, continued) == (State.CANCELLED, None, [])
