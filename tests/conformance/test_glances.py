"""Figures for a glance: of a day, of two hours, of what waits for another attempt."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A
from tenure._model.job import NewJob
from tenure._model.outcome import Failed, Succeeded
from tenure._model.overview import HorizonHolderKind, HourlyFailures, LateSchedule
from tenure._model.schedule import NewSchedule, Timing
from tenure._model.stats import Count
from tests.conformance.acts import BY, ERROR, enqueue, running, settle
from tests.conformance.test_rollups import fold_all

if TYPE_CHECKING:
    from support.store import Database

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
async def db(db: Database) -> Database:
    """The clock stands at noon of a day that has its partitions: tomorrow's."""
    tomorrow = db.clock.now.astimezone(UTC) + timedelta(days=1)
    db.clock.now = tomorrow.replace(hour=12, minute=0, second=0)
    return db


async def failed(db: Database) -> None:
    """A job that failed for good, just now."""
    await settle(db, await running(db, max_attempts=1), Failed(ERROR))


async def test_what_was_completed_today_is_counted_before_and_after_it_is_folded(
    db: Database,
) -> None:
    """Shows R35."""
    await settle(db, await running(db), Succeeded())
    await failed(db)
    assert (await db.run(db.store.overview.pulse())).completed_today == Count(1)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    await settle(db, await running(db), Succeeded())
    assert (await db.run(db.store.overview.pulse())).completed_today == Count(2)
    db.clock.advance(12 * HOUR)
    assert (await db.run(db.store.overview.pulse())).completed_today == Count(0)


async def test_dead_letters_of_a_day_and_of_an_hour(db: Database) -> None:
    await failed(db)
    db.clock.advance(2 * HOUR)
    await failed(db)
    pulse = await db.run(db.store.overview.pulse())
    assert (pulse.failed_day, pulse.failed_hour) == (Count(2), Count(1))


async def test_leases_that_are_over_are_counted(db: Database) -> None:
    """Shows R35."""
    await running(db)
    assert (await db.run(db.store.overview.pulse())).expired == Count(0)
    db.clock.advance(MINUTE)
    pulse = await db.run(db.store.overview.pulse())
    assert (pulse.expired, pulse.now) == (Count(1), db.clock.now)


async def test_jobs_that_were_tried_before_are_retrying_due_or_not(db: Database) -> None:
    await enqueue(db)
    await enqueue(db, queue="other")
    queues = ["other", "q"]
    assert await db.run(db.store.overview.retrying(queues)) == Count(0)
    await settle(db, await running(db, priority=9), Failed(ERROR))
    assert await db.run(db.store.overview.retrying(queues)) == Count(1)
    db.clock.advance(HOUR)
    assert await db.run(db.store.overview.retrying(queues)) == Count(1)
    assert await db.run(db.store.overview.retrying(["other"])) == Count(0)


async def test_deep_queue_is_read_up_to_a_bound(db: Database) -> None:
    await db.run(db.store.jobs.enqueue([NewJob("t", queue="q")] * 1001))
    assert await db.run(db.store.overview.retrying(["q"])) == Count(0, more=True)


async def test_two_hours_of_each_queue(db: Database) -> None:
    for outcome in (Succeeded(), Succeeded(), Failed(ERROR)):
        await settle(db, await running(db, max_attempts=1), outcome)
    db.clock.advance(HOUR + 10 * MINUTE)
    await settle(db, await running(db, max_attempts=1), Failed(ERROR))
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    hours = await db.run(db.store.overview.hours(["none", "q"]))
    assert hours == {
        "none": (HourlyFailures(), HourlyFailures()),
        "q": (HourlyFailures(1, 1), HourlyFailures(3, 1)),
    }
    assert hours["q"][1].share == pytest.approx(1 / 3)


async def test_what_was_completed_last_comes_first(db: Database) -> None:
    """Shows R35."""
    first = await running(db)
    await settle(db, await running(db), Failed(ERROR))
    db.clock.advance(5 * SECOND)
    await settle(db, first, Succeeded())
    second = await running(db)
    db.clock.advance(SECOND)
    await settle(db, second, Succeeded())
    newest, older = await db.run(db.store.overview.completions(count=10))
    assert (newest.job_id, older.job_id) == (second.lease.job_id, first.lease.job_id)
    assert (older.ran, older.attempt, older.claimed_by) == (5 * SECOND, 1, A)
    assert len(await db.run(db.store.overview.completions(count=1))) == 1


async def test_schedules_that_are_due_for_long(db: Database) -> None:
    for name, every in (("a", 600), ("b", 1200), ("c", 86_400)):
        timing = Timing(every=every * SECOND)
        new = NewSchedule(name=name, timing=timing, job=NewJob("t"))
        await db.run(db.store.schedules.create(new, BY))
    await db.fetch("UPDATE tenure.schedule SET next_at = $1 WHERE name = 'a'", db.clock.now)
    await db.fetch("UPDATE tenure.schedule SET next_at = $1 WHERE name = 'b'", db.clock.now - HOUR)
    late = await db.run(db.store.overview.late_schedules(MINUTE, count=3))
    assert late == [LateSchedule("b", HOUR)]


async def test_a_transaction_that_keeps_dead_rows_is_named(db: Database) -> None:
    await enqueue(db)
    writer = await db.party("writer")
    async with writer.transaction() as open_one:
        await open_one.run(db.store.jobs.enqueue([NewJob("t")]))
        holders = await db.run(db.store.overview.holders(count=3))
    [holder] = [each for each in holders if each.application == "writer"]
    assert holder.kind is HorizonHolderKind.SESSION
    assert int(holder.name) == writer.connection.info.backend_pid
    assert holder.age is not None
    assert holder.state == "idle in transaction"
