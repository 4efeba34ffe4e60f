"""Schedules as operators make and steer them, each change with who and why."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.audit import By
from tenure._model.job import NewJob
from tenure._model.operation import NewBackfill, OperationState
from tenure._model.outcome import Succeeded
from tenure._model.schedule import (
    Missed,
    Overlap,
    PolicyChange,
    ScheduleState,
    Timing,
)
from tenure._rules import timing
from tenure.errors import InvalidValue, PayloadError
from tests.conformance.acts import BY, claim, get, settle
from tests.conformance.scheduling import (
    HOUR,
    MINUTE,
    NOON,
    a_schedule,
    backfill,
    created,
    fire,
    jobs,
    outcomes,
    run_minutes,
)

if TYPE_CHECKING:
    from datetime import datetime

    from support.store import Database


def minutes(first: int, last: int) -> list[datetime]:
    return list(
        timing.between(Timing(every=MINUTE), NOON + (first - 1) * MINUTE, NOON + last * MINUTE)
    )


async def test_a_schedule_reads_back_as_it_was_made(db: Database) -> None:
    """Shows R24."""
    job = NewJob(
        "t", queue="q", args={"a": [1]}, priority=8, lease=40 * SECOND, meta={"tags": ["x"]}
    )
    wanted = a_schedule(
        timing=Timing(cron="0 9 * * 1-5", zone="Europe/Berlin"),
        job=job,
        missed=Missed.ALL,
        missed_within=HOUR,
        missed_limit=7,
        overlap=Overlap.SKIP,
        jitter=SECOND,
    )
    row = await created(db, wanted)
    assert (row.timing, row.job, row.policy) == (wanted.timing, wanted.job, wanted.policy)
    assert (row.in_force, row.program, row.state) == (wanted.policy, None, ScheduleState.ACTIVE)
    assert await db.run(db.store.schedules.get("s")) == row
    assert await db.run(db.store.schedules.list()) == [row]
    assert await db.run(db.store.schedules.list(after="s")) == []


async def test_two_schedules_cannot_have_one_name(db: Database) -> None:
    await created(db)
    with pytest.raises(InvalidValue, match="schedule 's' already exists; update it"):
        await db.run(db.store.schedules.create(a_schedule(timing=Timing(every=HOUR)), BY))


async def test_what_no_job_may_be_no_schedule_makes(db: Database) -> None:
    with pytest.raises(InvalidValue, match="schedule name must be"):
        await db.run(db.store.schedules.create(a_schedule("no name"), BY))
    with pytest.raises(PayloadError):
        await db.run(db.store.schedules.create(a_schedule(job=NewJob("t", args={"x": b""})), BY))


async def test_a_change_accounts_for_what_is_due_and_then_begins_from_now(db: Database) -> None:
    await created(db)
    db.clock.now = NOON + 90 * SECOND
    row = await db.run(db.store.schedules.update(a_schedule(timing=Timing(every=HOUR)), BY))
    assert (row.next_at, row.last_at, row.version) == (NOON + HOUR, NOON + MINUTE, 2)
    assert await outcomes(db) == [(1, "fired")]


async def test_what_code_declares_is_changed_there(db: Database) -> None:
    await db.run(db.store.schedules.declare("shop", (1,), [a_schedule()]))
    with pytest.raises(InvalidValue, match="shop declares the schedule 's' in its code, so"):
        await db.run(db.store.schedules.update(a_schedule(), BY))
    with pytest.raises(InvalidValue, match="remove it there, or pause it"):
        await db.run(db.store.schedules.delete("s", BY))
    await db.run(db.store.schedules.declare("shop", (1,), []))
    await db.run(db.store.schedules.delete("s", BY))
    assert await db.run(db.store.schedules.get("s")) is None


async def test_a_paused_schedule_records_its_ticks_and_makes_no_jobs(db: Database) -> None:
    """Shows R28."""
    await created(db)
    row = await db.run(db.store.schedules.pause("s", By("grace", reason="a flood")))
    assert (row.state, row.paused_by, row.paused_reason) == ("paused", "grace", "a flood")
    db.clock.now = NOON + 2 * MINUTE
    await fire(db)
    db.clock.advance(30 * SECOND)
    row = await db.run(db.store.schedules.resume("s", BY))
    db.clock.now = NOON + 3 * MINUTE
    await fire(db)

    assert (row.state, row.paused_at, row.paused_by) == (ScheduleState.ACTIVE, None, None)
    assert await outcomes(db) == [(1, "paused"), (2, "paused"), (3, "fired")]


async def test_unrecorded_ticks_of_a_pause_are_not_caught_up(db: Database) -> None:
    await created(db, a_schedule(missed=Missed.ALL))
    await db.run(db.store.schedules.pause("s", BY))
    db.clock.now = NOON + 3 * MINUTE
    await db.run(db.store.schedules.resume("s", BY))
    await fire(db)
    assert await outcomes(db) == [(1, "paused"), (2, "paused"), (3, "paused")]


async def test_a_pause_ends_by_itself_at_its_time(db: Database) -> None:
    """Shows R28."""
    await created(db)
    await db.run(db.store.schedules.pause("s", BY, until=NOON + 2 * MINUTE))
    db.clock.now = NOON + 3 * MINUTE
    await fire(db)
    row = await db.run(db.store.schedules.get("s"))
    assert row is not None
    assert row.state is ScheduleState.ACTIVE
    assert await outcomes(db) == [(1, "paused"), (2, "fired"), (3, "fired")]


async def test_what_is_due_is_judged_by_the_policy_that_is_set_now(db: Database) -> None:
    await created(db, a_schedule(missed=Missed.ALL))
    db.clock.now = NOON + HOUR
    row = await db.run(db.store.schedules.set_policy("s", PolicyChange(missed=Missed.SKIP), BY))
    await fire(db)
    assert row.in_force.missed is Missed.SKIP
    assert await run_minutes(db) == [59, 60]

    row = await db.run(db.store.schedules.set_policy("s", PolicyChange(), BY))
    assert row.in_force.missed is Missed.ALL


async def test_a_deleted_schedule_has_no_more_ticks(db: Database) -> None:
    """Shows R28."""
    await created(db)
    await db.run(db.store.schedules.delete("s", BY))
    db.clock.advance(HOUR)
    assert await fire(db) == 0
    assert await jobs(db) == []


async def test_run_now_is_beside_the_ticks(db: Database) -> None:
    await created(db)
    db.clock.now = NOON + MINUTE
    answer = await db.run(db.store.schedules.run("s", BY))
    await fire(db)

    job = await get(db, answer.id)
    assert (job.meta, job.args) == ({"schedule": "s"}, {"n": 1})
    assert len(await jobs(db)) == 2
    assert await outcomes(db) == [(1, "fired")]


async def test_run_now_with_a_key_runs_once(db: Database) -> None:
    await created(db)
    first = await db.run(db.store.schedules.run("s", BY, key="request-1"))
    again = await db.run(db.store.schedules.run("s", BY, key="request-1"))
    other = await db.run(db.store.schedules.run("s", BY, key="request-2"))
    assert (again.id, again.created) == (first.id, False)
    assert other.created
    assert len(await db.run(db.store.audit.list("schedule:s"))) == 3


async def test_a_key_of_run_now_is_held_for_a_day_after_its_job(db: Database) -> None:
    await created(db)
    first = await db.run(db.store.schedules.run("s", BY, key="request-1"))
    [claimed] = await claim(db)
    await settle(db, claimed, Succeeded())
    db.clock.advance(23 * HOUR)
    again = await db.run(db.store.schedules.run("s", BY, key="request-1"))
    assert (again.id, again.created) == (first.id, False)
    db.clock.advance(HOUR)
    assert (await db.run(db.store.schedules.run("s", BY, key="request-1"))).created


async def test_a_backfill_makes_the_jobs_of_past_ticks_once(db: Database) -> None:
    """Shows R28."""
    await created(db, a_schedule(missed=Missed.SKIP))
    db.clock.now = NOON + 10 * MINUTE
    await fire(db)
    assert await run_minutes(db) == [9, 10]

    done = await backfill(db, minutes(-4, 10))
    assert (done.state, done.total, done.outcomes) == (OperationState.DONE, 13, {"fired": 13})
    assert sorted(await run_minutes(db)) == list(range(-4, 11))
    assert (await backfill(db, minutes(-4, 10))).total == 0
    assert [what for _, what in await outcomes(db)] == ["backfill"] * 13 + ["fired"] * 2
    noted = (await db.run(db.store.audit.list("schedule:s")))[1]
    assert noted.action == "schedule.backfill"
    assert noted.after == {"operation": done.id, "total": 13}


async def test_the_items_of_a_backfill_name_their_ticks_and_then_their_jobs(db: Database) -> None:
    await created(db)
    wanted = minutes(-3, -1)
    new = NewBackfill(
        schedule="s", queue="q", since=wanted[0], until=wanted[-1], fire_ats=wanted, rate=2
    )
    started = await db.run(db.store.operations.start_backfill(new, BY))
    await db.run(db.store.operations.run_chunk())

    items, _ = await db.run(db.store.operations.items(started.id))

    assert [item.fire_at for item in items] == wanted
    assert [item.outcome for item in items] == ["fired", None, None]
    [made] = await db.run(db.store.ticks.list("s"))
    assert [item.job_id for item in items] == [made.job_id, None, None]
    assert made.job_id is not None
    [member] = await db.run(db.store.operations.of_job(made.job_id))
    assert member.operation.id == started.id


async def test_items_changed_meanwhile_are_reported(db: Database) -> None:
    await created(db)
    wanted = minutes(-3, -2)
    new = NewBackfill(
        schedule="s", queue="q", since=wanted[0], until=wanted[-1], fire_ats=wanted, rate=2
    )
    first, second = [await db.run(db.store.operations.start_backfill(new, BY)) for _ in range(2)]
    for _ in range(3):
        await db.run(db.store.operations.run_chunk())
        db.clock.advance(SECOND / 2)
    await db.run(db.store.schedules.delete("s", BY))
    await db.run(db.store.operations.run_chunk())

    ended = [await db.run(db.store.operations.get(each.id)) for each in (first, second)]

    assert [row and row.outcomes for row in ended] == [
        {"fired": 2},
        {"had_job": 1, "not_found": 1},
    ]


async def test_a_backfilled_tick_is_not_fired_again(db: Database) -> None:
    await created(db)
    db.clock.now = NOON + MINUTE
    await backfill(db, minutes(1, 1))
    await fire(db)
    row = await db.run(db.store.schedules.get("s"))
    assert row is not None
    assert row.next_at == NOON + 2 * MINUTE
    assert await run_minutes(db) == [1]


async def test_past_runs_are_listed_newest_first(db: Database) -> None:
    """Shows R28."""
    await created(db, a_schedule(missed=Missed.ALL))
    db.clock.now = NOON + 5 * MINUTE
    await fire(db)
    page = await db.run(db.store.ticks.list("s", count=2))
    rest = await db.run(db.store.ticks.list("s", before=page[-1].fire_at, count=9))
    assert [t.fire_at - NOON for t in [*page, *rest]] == [m * MINUTE for m in (5, 4, 3, 2, 1)]


@pytest.mark.parametrize("verb", ["pause", "resume", "delete", "run"])
async def test_a_name_that_no_schedule_has_is_refused(db: Database, verb: str) -> None:
    with pytest.raises(InvalidValue, match="schedule 'nobody' does not exist; list them"):
        await db.run(getattr(db.store.schedules, verb)("nobody", BY))


async def test_every_change_is_in_the_audit(db: Database) -> None:
    await created(db)
    await db.run(db.store.schedules.pause("s", BY, until=NOON + HOUR))
    await db.run(db.store.schedules.resume("s", BY))
    await db.run(db.store.schedules.set_policy("s", PolicyChange(jitter=timedelta(seconds=3)), BY))
    await db.run(db.store.schedules.update(a_schedule(timing=Timing(every=HOUR)), BY))
    await db.run(db.store.schedules.run("s", BY))
    await db.run(db.store.schedules.delete("s", BY))
    noted = await db.run(db.store.audit.list("schedule:s"))
    assert [row.action.removeprefix("schedule.") for row in noted][::-1] == [
        "create", "pause", "resume", "set_policy", "update", "run", "delete",
    ]  # fmt: skip
    assert all((row.actor, row.reason) == ("ada", "because") for row in noted)
