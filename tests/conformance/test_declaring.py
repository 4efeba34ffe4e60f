"""Declaring: a program's schedules are what its newest version declares, and no other program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.store import SECOND
from tenure._model.job import NewJob
from tenure._model.schedule import DeclareResult, Missed, PolicyChange, ScheduleState, Timing
from tests.conformance.acts import BY
from tests.conformance.scheduling import (
    HOUR,
    MINUTE,
    NOON,
    a_schedule,
    created,
    fire,
    outcomes,
    run_minutes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.schedule import NewSchedule, ScheduleRow


async def declare(
    db: Database, *schedules: NewSchedule, program: str = "shop", version: Sequence[int] = (1,)
) -> DeclareResult:
    return await db.run(db.store.schedules.declare(program, version, schedules))


async def found(db: Database, name: str = "s") -> ScheduleRow:
    row = await db.run(db.store.schedules.get(name))
    assert row is not None
    return row


async def test_a_program_s_first_start_makes_its_schedules(db: Database) -> None:
    db.clock.now = NOON
    done = await declare(db, a_schedule("a"), a_schedule("b"))

    assert done == DeclareResult(made=("a", "b"))
    row = await found(db, "a")
    assert (row.program, row.program_version, row.version) == ("shop", (1,), 1)
    assert (row.next_at, row.state) == (NOON + MINUTE, ScheduleState.ACTIVE)


async def test_a_start_without_a_difference_writes_nothing(db: Database) -> None:
    db.clock.now = NOON
    at = NOON + HOUR
    schedules = [
        a_schedule("a", job=NewJob("t", args={"x": [1, 2.5, None]}, meta={"timeout": 3.0})),
        a_schedule("b", timing=Timing(cron="5 4 * * *", zone="Asia/Tokyo"), jitter=1.5 * SECOND),
        a_schedule("c", timing=Timing(at=at), missed=Missed.ALL),
    ]
    await declare(db, *schedules)
    before = await db.fetch("SELECT *, xmin FROM tenure.schedule ORDER BY name")
    db.clock.advance(MINUTE)

    assert await declare(db, *schedules) == DeclareResult()
    assert await db.fetch("SELECT *, xmin FROM tenure.schedule ORDER BY name") == before


async def test_a_change_begins_from_now_and_raises_the_version(db: Database) -> None:
    db.clock.now = NOON
    await declare(db, a_schedule())
    db.clock.advance(30 * SECOND)
    done = await declare(db, a_schedule(timing=Timing(every=HOUR)), version=(2,))

    assert done == DeclareResult(changed=("s",))
    row = await found(db)
    assert (row.version, row.program_version, row.next_at) == (2, (2,), NOON + HOUR)


async def test_what_is_due_by_the_old_definition_is_accounted_for_before_a_change(
    db: Database,
) -> None:
    """Shows R26."""
    db.clock.now = NOON
    await declare(db, a_schedule(missed=Missed.ALL), a_schedule("dropped", missed=Missed.ALL))
    db.clock.now = NOON + 5 * MINUTE + SECOND
    await declare(db, a_schedule(timing=Timing(every=HOUR)), version=(2,))

    assert [minute for minute, _ in await outcomes(db)] == [1, 2, 3, 4, 5]
    assert [minute for minute, _ in await outcomes(db, "dropped")] == [1, 2, 3, 4, 5]
    assert len(await run_minutes(db)) == 10


async def test_an_older_version_changes_nothing_that_a_newer_one_wrote(db: Database) -> None:
    """Shows R26. A rolling deploy may start the old version last."""
    db.clock.now = NOON
    old = [a_schedule("changed"), a_schedule("removed"), a_schedule("same")]
    new = [
        a_schedule("changed", timing=Timing(every=HOUR)),
        a_schedule("same"),
        a_schedule("added"),
    ]
    await declare(db, *old, version=(1, 9))
    done = await declare(db, *new, version=(1, 10))
    assert done == DeclareResult(made=("added",), changed=("changed",), retired=("removed",))

    again = await declare(db, *old, version=(1, 9))
    assert again == DeclareResult(newer=("added", "changed", "removed", "same"))
    assert (await found(db, "changed")).timing == Timing(every=HOUR)
    assert (await found(db, "added")).state is ScheduleState.ACTIVE
    assert (await found(db, "removed")).state is ScheduleState.RETIRED
    assert await declare(db, *new, version=(1, 10)) == DeclareResult()


async def test_an_older_version_makes_nothing_beside_a_newer_one(db: Database) -> None:
    """What is not there, the newer one does not declare: nothing would retire it."""
    db.clock.now = NOON
    await declare(db, a_schedule("same"), version=(2,))
    await declare(db, a_schedule("others"), program="other", version=(1,))
    old = [a_schedule("same"), a_schedule("dropped"), a_schedule("others")]
    assert await declare(db, *old, version=(1,)) == DeclareResult(
        newer=("dropped", "others", "same")
    )
    names = [row["name"] for row in await db.fetch("SELECT name FROM tenure.schedule ORDER BY 1")]
    assert names == ["others", "same"]
    assert (await found(db, "others")).program == "other"
    assert await declare(db, *old, version=(3,)) == DeclareResult(
        made=("dropped",), changed=("others",)
    )


async def test_one_that_vanished_is_retired_and_kept(db: Database) -> None:
    db.clock.now = NOON
    await declare(db, a_schedule())
    assert await declare(db, version=(2,)) == DeclareResult(retired=("s",))
    db.clock.advance(HOUR)

    assert await fire(db) == 0
    row = await found(db)
    assert (row.state, row.next_at) == (ScheduleState.RETIRED, None)
    [noted, *_] = await db.run(db.store.audit.list("schedule:s"))
    assert (noted.actor, noted.source, noted.action) == ("shop", "code", "schedule.retire")
    assert noted.reason == "version 2 no longer declares it"


async def test_retired_schedule_continues_when_declared_again(db: Database) -> None:
    db.clock.now = NOON
    await declare(db, a_schedule())
    await declare(db)
    db.clock.advance(HOUR)
    assert await declare(db, a_schedule()) == DeclareResult(changed=("s",))
    await fire(db)

    row = await found(db)
    assert (row.state, row.next_at) == (ScheduleState.ACTIVE, NOON + HOUR + MINUTE)
    assert await outcomes(db) == []


async def test_a_program_retires_no_other_s_schedules(db: Database) -> None:
    db.clock.now = NOON
    await declare(db, a_schedule("a"), program="shop")
    await declare(db, a_schedule("b"), program="mail")
    await db.run(db.store.schedules.create(a_schedule("c"), BY))

    assert await declare(db, a_schedule("a"), program="shop") == DeclareResult()
    assert (await found(db, "b")).state is ScheduleState.ACTIVE
    assert (await found(db, "c")).state is ScheduleState.ACTIVE


async def test_declaration_takes_over_an_existing_name(db: Database) -> None:
    await created(db)
    assert await declare(db, a_schedule()) == DeclareResult(changed=("s",))
    assert (await found(db)).program == "shop"
    assert await declare(db, a_schedule(), program="mail") == DeclareResult(changed=("s",))
    assert (await found(db)).program == "mail"


async def test_what_an_operator_set_outlives_a_deploy(db: Database) -> None:
    """Shows R28."""
    db.clock.now = NOON
    await declare(db, a_schedule())
    await db.run(db.store.schedules.pause("s", BY))
    await db.run(
        db.store.schedules.set_policy("s", PolicyChange(missed=Missed.SKIP, jitter=SECOND), BY)
    )
    await declare(db, a_schedule(missed=Missed.ALL, missed_limit=5), version=(2,))

    row = await found(db)
    assert row.state is ScheduleState.PAUSED
    assert (row.policy.missed, row.policy.missed_limit) == (Missed.ALL, 5)
    assert (row.in_force.missed, row.in_force.missed_limit) == (Missed.SKIP, 5)
    assert row.in_force.jitter == SECOND


async def test_the_audit_has_what_code_changed(db: Database) -> None:
    db.clock.now = NOON
    await declare(db, a_schedule())
    await declare(db, a_schedule(timing=Timing(every=HOUR)), version=(2, 1))
    [noted, first] = await db.run(db.store.audit.list("schedule:s"))
    assert (first.before, first.action) == (None, "schedule.declare")
    assert (noted.before["every"], noted.after["every"]) == (60.0, 3600.0)
    assert noted.reason == "version 2.1"
