"""Schedulers that fire at once, and changes that come while they do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tenure._model.audit import By
from tenure._model.job import NewJob
from tenure._model.operation import NewBackfill
from tenure._model.schedule import DeclareResult, NewSchedule, Policy, Timing
from tenure._store.postgres.sessions import AsyncSession
from tenure._store.steps import Query, TransactionMark

if TYPE_CHECKING:
    from support.store import Database, Party
    from tenure._model.schedule import ScheduleRow
    from tenure._store.steps import Op, Rows, Step

BY = By("ada")
MINUTE = timedelta(minutes=1)
NOON = datetime(2027, 5, 1, 12, tzinfo=UTC)


def a_schedule(name: str = "s", every: timedelta = MINUTE, **policy: Any) -> NewSchedule:
    return NewSchedule(
        name=name,
        timing=Timing(every=every),
        job=NewJob("t", queue="q"),
        policy=Policy(**policy),
    )


async def made(db: Database, *schedules: NewSchedule) -> None:
    """Schedules of noon, whose first tick is due a minute later."""
    db.clock.now = NOON
    for schedule in schedules or [a_schedule()]:
        await db.run(db.store.schedules.create(schedule, BY))
    db.clock.now = NOON + MINUTE


async def begun(party: Party, op: Op[Any], last: str) -> Op[Any]:
    """Perform an operation up to and with a statement, and leave its transaction open."""
    step = next(op)
    while True:
        rows = await _performed(party, step)
        if isinstance(step, Query) and step.name == last:
            return op
        step = op.send(rows)


async def _performed(party: Party, step: Step) -> Rows:
    if isinstance(step, TransactionMark):
        await party.connection.execute(step.value)
        return []
    return await AsyncSession(party.connection, own=False).run(_only(step))


def _only(step: Step) -> Op[Rows]:
    return (yield step)


async def jobs(db: Database) -> list[str]:
    rows = await db.fetch("SELECT meta ->> 'schedule' AS name FROM tenure.job ORDER BY 1")
    return [row["name"] for row in rows]


async def test_a_schedule_that_another_scheduler_is_at_is_passed_over(db: Database) -> None:
    """Shows R26."""
    await made(db, a_schedule("a"), a_schedule("b"))
    first, second = await db.party("first"), await db.party("second")
    await begun(first, db.store.ticks.fire(count=1), "lock_due_schedules")

    assert (await second.run(db.store.ticks.fire())).ticks == 1
    assert (await second.run(db.store.ticks.fire())).ticks == 0
    await first.connection.rollback()
    assert (await second.run(db.store.ticks.fire())).ticks == 1
    assert await jobs(db) == ["a", "b"]


async def test_of_a_scheduler_that_dies_before_its_commit_nothing_is_left(db: Database) -> None:
    """Shows R26."""
    await made(db)
    dying = await db.party("dying")
    await begun(dying, db.store.ticks.fire(), "fire")
    assert await jobs(db) == []
    await dying.connection.close()
    await db.until_gone("dying")

    assert (await db.run(db.store.ticks.fire())).ticks == 1
    assert await jobs(db) == ["s"]


async def test_a_change_waits_for_the_firing_and_then_begins_after_it(db: Database) -> None:
    """Shows R26."""
    await made(db)
    firing, operator = await db.party("firing"), await db.party("operator")
    await begun(firing, db.store.ticks.fire(), "fire")
    changing = asyncio.create_task(
        operator.run(db.store.schedules.update(a_schedule(every=5 * MINUTE), BY))
    )
    await db.until_blocked("operator")
    await firing.connection.execute("COMMIT")

    row: ScheduleRow = await changing
    assert (row.last_at, row.next_at) == (NOON + MINUTE, NOON + 5 * MINUTE)
    assert await jobs(db) == ["s"]


async def test_a_firing_passes_over_a_schedule_that_is_being_changed(db: Database) -> None:
    await made(db)
    operator = await db.party("operator")
    await begun(operator, db.store.schedules.pause("s", BY), "set_schedule_state")
    assert (await db.run(db.store.ticks.fire())).ticks == 0
    await operator.connection.execute("COMMIT")

    assert (await db.run(db.store.ticks.fire())).ticks == 1
    assert await jobs(db) == []


async def test_a_backfill_of_the_tick_that_is_being_fired_waits_and_finds_it(db: Database) -> None:
    await made(db)
    tick = NOON + MINUTE
    new = NewBackfill(schedule="s", queue="q", since=tick, until=tick, fire_ats=[tick], rate=1)
    started = await db.run(db.store.operations.start_backfill(new, BY))
    firing, advancer = await db.party("firing"), await db.party("advancer")
    await begun(firing, db.store.ticks.fire(), "fire")
    filling = asyncio.create_task(advancer.run(db.store.operations.run_chunk()))
    await db.until_blocked("advancer")
    await firing.connection.execute("COMMIT")

    assert await filling == 1
    row = await db.run(db.store.operations.get(started.id))
    assert row is not None
    assert row.outcomes == {"had_job": 1}
    assert await jobs(db) == ["s"]


async def test_programs_that_start_at_once_declare_one_set(db: Database) -> None:
    first, second = await db.party("first"), await db.party("second")
    wanted = [a_schedule("a"), a_schedule("b")]
    await begun(first, db.store.schedules.declare("shop", (1,), wanted), "write_schedules")
    declaring = asyncio.create_task(second.run(db.store.schedules.declare("shop", (1,), wanted)))
    await db.until_blocked("second")
    await first.connection.execute("COMMIT")

    done: DeclareResult = await declaring
    assert done == DeclareResult()
    rows = await db.run(db.store.schedules.list())
    assert [(row.name, row.version) for row in rows] == [("a", 1), ("b", 1)]
