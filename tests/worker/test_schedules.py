"""Schedules in a program that works: fired, seen by the handler, and left alone where told so."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tenure._model.job import State
from tenure.testing import adrain
from tests.worker.acts import BY, set_off, until

if TYPE_CHECKING:
    from support.store import Database
    from tenure import AsyncJob, Job, Tenure

CONNECTED = (
    "SELECT 1 AS one FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'tenure % scheduler'"
)


async def test_worker_fires_schedules_and_the_handler_sees_the_scheduled_time(
    app: Tenure, db: Database
) -> None:
    """In both kinds of handlers. Shows R24. Shows R27."""
    seen: asyncio.Queue[tuple[str | None, datetime | None, datetime]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    @app.schedule(every=1, name="plain", args={"note": "by thread"})
    @app.task(name="plain")
    def plain(job: Job, note: str) -> None:
        reported = (job.schedule, job.tick_at, datetime.now(UTC))
        loop.call_soon_threadsafe(seen.put_nowait, reported)

    @app.schedule("0 0 1 1 *", name="yearly")
    @app.schedule(every=1, name="quick")
    @app.task(name="quick")
    async def quick(job: AsyncJob) -> None:
        seen.put_nowait((job.schedule, job.tick_at, datetime.now(UTC)))

    async with asyncio.timeout(20), app.run():
        names: set[str | None] = set()
        while names < {"plain", "quick"}:
            name, tick_at, ran_at = await seen.get()
            names.add(name)
            assert tick_at is not None
            assert tick_at.utcoffset() == timedelta(0)
            assert timedelta(0) <= ran_at - tick_at < timedelta(seconds=1)
            assert tick_at.microsecond == 0

    rows = await db.fetch("SELECT name, program FROM tenure.schedule ORDER BY name")
    assert [row["name"] for row in rows] == ["plain", "quick", "yearly"]
    assert {row["program"] for row in rows} == {"tests.worker.conftest"}


async def test_a_job_that_was_enqueued_or_run_by_hand_has_no_tick(app: Tenure) -> None:
    seen: asyncio.Queue[tuple[str | None, datetime | None]] = asyncio.Queue()

    @app.schedule("0 0 1 1 *", name="yearly")
    @app.task(name="report")
    async def report(job: AsyncJob) -> None:
        seen.put_nowait((job.schedule, job.tick_at))

    async with asyncio.timeout(10), app.run():
        await report.aenqueue()
        assert await seen.get() == (None, None)

        async def declared() -> bool:
            return await app.engine.arun(app.engine.store.schedules.get("yearly")) is not None

        await until(declared)
        await app.engine.arun(app.engine.store.schedules.run("yearly", BY))
        assert await seen.get() == ("yearly", None)


async def test_worker_without_schedules_neither_declares_nor_fires(
    app: Tenure, db: Database
) -> None:
    @app.schedule(every=1)
    @app.task(name="report")
    async def report() -> None: ...

    async with app.run(schedules=False):
        handle = await report.aenqueue()
        await handle.wait_async(10)
        assert await db.fetch(CONNECTED) == []
    assert await db.fetch("SELECT name FROM tenure.schedule") == []


async def test_a_worker_that_drains_fires_nothing_more(app: Tenure, db: Database) -> None:
    """While its last handler runs, its scheduler is gone."""
    begun, gate = asyncio.Event(), asyncio.Event()

    @app.schedule(every=1)
    @app.task(name="report")
    async def report() -> None: ...

    @app.task(name="long")
    async def long() -> None:
        begun.set()
        await gate.wait()

    async def fires() -> bool:
        return bool(await db.fetch(CONNECTED))

    async def rests() -> bool:
        return not await db.fetch(CONNECTED)

    async def work() -> None:
        async with app.run():
            await long.aenqueue()
            await begun.wait()
            await until(fires)

    working = asyncio.create_task(work())
    await set_off(begun)
    await until(rests)
    assert not working.done()
    gate.set()
    await working


@pytest.mark.timing
async def test_a_handler_that_blocks_the_event_loop_makes_no_tick_late(
    app: Tenure, db: Database
) -> None:
    """Shows R27."""
    waits: list[Any] = []

    @app.schedule(every=1, name="seconds")
    @app.task(name="report", queue="unserved")
    async def report() -> None: ...

    @app.task(name="blocks", timeout=None, lease=30)
    async def blocks() -> None:
        deadline = time.monotonic() + 10
        with psycopg.connect(db.url, autocommit=True) as connection:
            [[began]] = connection.execute("SELECT clock_timestamp()")
            while len(waits) < 3 and time.monotonic() < deadline:
                time.sleep(0.02)  # noqa: ASYNC251 - to block the loop is what it is for
                waits[:] = connection.execute(
                    "SELECT recorded_at - fire_at FROM tenure.schedule_tick WHERE fire_at > %s",
                    [began],
                ).fetchall()

    async with app.run(queues=["default"]):
        handle = await blocks.aenqueue()
        await handle.wait_async(20)
        assert handle.state is State.COMPLETED
    assert len(waits) == 3
    assert sorted(wait for [wait] in waits)[1] < timedelta(seconds=1)


async def test_a_drain_in_a_test_fires_no_schedules(app: Tenure, db: Database) -> None:
    """Not even with time passed in: what runs is what the test enqueued."""

    @app.schedule(every=1)
    @app.task(name="report")
    async def report() -> None: ...

    await report.aenqueue()
    drained = await adrain(app, fast_forward=3600)
    assert len(drained.ran) == 1
    assert await db.fetch("SELECT name FROM tenure.schedule") == []
