"""Firing: each tick makes one job or one row that says why not, and the next time moves on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.job import NewJob
from tenure._model.outcome import Succeeded
from tenure._model.schedule import Missed, Overlap, ScheduleState, Timing
from tests.conformance.acts import BY, claim, settle
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
    ticks,
)

if TYPE_CHECKING:
    from support.store import Database


async def test_a_tick_makes_one_job_that_carries_its_time(db: Database) -> None:
    """Shows R24."""
    job = NewJob(
        "t", queue="q", args={"n": 1}, priority=7, max_attempts=9, lease=90 * SECOND,
        meta={"tags": ["x"]},
    )  # fmt: skip
    await created(db, a_schedule(job=job))
    db.clock.advance(MINUTE + SECOND)
    assert await fire(db) == 1

    [made] = await jobs(db)
    [tick] = await ticks(db)
    assert (made["queue"], made["task"], made["args"]) == ("q", "t", {"n": 1})
    assert (made["priority"], made["max_attempts"], made["lease"]) == (7, 9, 90 * SECOND)
    assert made["meta"] == {
        "tags": ["x"],
        "schedule": "s",
        "tick_at": "2027-03-27T12:01:00.000000Z",
    }
    assert (tick.fire_at, tick.outcome, tick.reason) == (NOON + MINUTE, "fired", None)
    assert tick.job_id == made["id"]


async def test_nothing_fires_before_its_time_or_again(db: Database) -> None:
    """Shows R26."""
    await created(db)
    db.clock.now = NOON + MINUTE - timedelta(microseconds=1)
    assert await fire(db) == 0
    db.clock.now = NOON + MINUTE
    assert await fire(db) == 1
    assert await fire(db) == 0
    row = await db.run(db.store.schedules.get("s"))
    assert row is not None
    assert (row.last_at, row.next_at) == (NOON + MINUTE, NOON + 2 * MINUTE)


async def test_a_pass_says_when_the_next_tick_is(db: Database) -> None:
    await created(db)
    firing = await db.run(db.store.ticks.fire())
    assert (firing.ticks, firing.next_at, firing.now) == (0, NOON + MINUTE, NOON)


async def test_a_one_time_schedule_fires_once_and_is_done(db: Database) -> None:
    """Shows R24."""
    await created(db, a_schedule(timing=Timing(at=NOON + 90 * SECOND)))
    db.clock.now = NOON + 90 * SECOND
    assert await fire(db) == 1
    db.clock.advance(365 * 24 * HOUR)
    assert await fire(db) == 0
    row = await db.run(db.store.schedules.get("s"))
    assert row is not None
    assert (row.state, row.next_at) == (ScheduleState.DONE, None)


async def test_a_schedule_keeps_local_time_across_the_change_of_the_clock(db: Database) -> None:
    """Shows R25."""
    daily = Timing(cron="30 9 * * *", zone="Europe/Berlin")
    await created(db, a_schedule(timing=daily, missed=Missed.ALL, missed_within=9 * 24 * HOUR))
    db.clock.now = NOON + 2 * 24 * HOUR
    await fire(db)
    assert [tick.fire_at for tick in await ticks(db)] == [
        datetime(2027, 3, 28, 7, 30, tzinfo=UTC),
        datetime(2027, 3, 29, 7, 30, tzinfo=UTC),
    ]
    row = await db.run(db.store.schedules.get("s"))
    assert row is not None
    assert row.created_at < datetime(2027, 3, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "ran"),
    [
        ({"missed": Missed.SKIP}, []),
        ({"missed": Missed.LATEST}, [115]),
        ({"missed": Missed.ALL}, list(range(5, 120, 5))),
        ({"missed": Missed.ALL, "missed_within": 10 * MINUTE}, [110, 115]),
        ({"missed": Missed.ALL, "missed_limit": 3}, [105, 110, 115]),
    ],
    ids=["skip", "latest", "all", "all within", "all at most"],
)
async def test_after_an_outage_of_two_hours_the_policy_decides(
    db: Database, policy: dict[str, Any], ran: list[int]
) -> None:
    """Shows R26. Whatever makes no job is a row that says so."""
    await created(db, a_schedule(timing=Timing(cron="*/5 * * * *"), **policy))
    db.clock.now = NOON + 2 * HOUR - MINUTE
    await fire(db)
    assert await run_minutes(db) == ran
    assert await outcomes(db) == [
        (minute, "late" if minute in ran else "missed") for minute in range(5, 120, 5)
    ]


async def test_a_tick_that_is_late_by_a_little_is_not_missed(db: Database) -> None:
    await created(db, a_schedule(timing=Timing(every=SECOND), missed=Missed.SKIP))
    db.clock.now = NOON + 5 * SECOND
    await fire(db)
    assert [tick.outcome for tick in await ticks(db)] == ["fired"] * 5


async def test_an_hourly_tick_is_missed_after_a_minute(db: Database) -> None:
    await created(db, a_schedule(timing=Timing(every=HOUR), missed=Missed.SKIP))
    db.clock.now = NOON + HOUR + MINUTE
    await fire(db)
    db.clock.now = NOON + 2 * HOUR + MINUTE + timedelta(microseconds=1)
    await fire(db)
    assert await outcomes(db) == [(60, "fired"), (120, "missed")]


async def test_a_missed_one_time_schedule_is_made_up_for_or_recorded(db: Database) -> None:
    at = Timing(at=NOON + MINUTE)
    await created(db, a_schedule("made-up", timing=at))
    await db.run(db.store.schedules.create(a_schedule("left", timing=at, missed=Missed.SKIP), BY))
    db.clock.now = NOON + HOUR
    await fire(db)
    assert await outcomes(db, "made-up") == [(1, "late")]
    assert await outcomes(db, "left") == [(1, "missed")]


async def test_an_overlap_is_skipped_while_the_last_job_lives(db: Database) -> None:
    await created(db, a_schedule(overlap=Overlap.SKIP))
    for minute in (1, 2):
        db.clock.now = NOON + minute * MINUTE
        await fire(db)
    [claimed] = await claim(db)
    db.clock.now = NOON + 3 * MINUTE
    await fire(db)
    await settle(db, claimed, Succeeded())
    db.clock.now = NOON + 4 * MINUTE
    await fire(db)
    assert await outcomes(db) == [(1, "fired"), (2, "overlap"), (3, "overlap"), (4, "fired")]


async def test_of_several_that_are_made_up_for_only_one_runs_without_overlap(db: Database) -> None:
    await created(db, a_schedule(overlap=Overlap.SKIP, missed=Missed.ALL))
    db.clock.now = NOON + 3 * MINUTE
    await fire(db)
    assert await outcomes(db) == [(1, "late"), (2, "overlap"), (3, "overlap")]


async def test_a_tick_that_has_its_job_already_hides_no_other_job_from_an_overlap(
    db: Database,
) -> None:
    """The clock was put back and the definition written again: its first tick is on record, makes
    nothing, and the job of the last one still lives."""
    await created(db, a_schedule(overlap=Overlap.SKIP))
    db.clock.now = NOON + MINUTE
    await fire(db)
    db.clock.now = NOON
    await db.run(db.store.schedules.update(a_schedule(overlap=Overlap.SKIP, jitter=SECOND), BY))
    for minute in (1, 2):
        db.clock.now = NOON + minute * MINUTE
        await fire(db)
    assert await outcomes(db) == [(1, "fired"), (2, "overlap")]


async def test_jitter_makes_the_job_due_later_and_not_its_tick(db: Database) -> None:
    await created(db, a_schedule(jitter=30 * SECOND))
    for minute in range(1, 6):
        db.clock.now = NOON + minute * MINUTE
        await fire(db)
    made = await jobs(db)
    waits = [job["run_at"] - job["created_at"] for job in made]
    assert await run_minutes(db) == [1, 2, 3, 4, 5]
    assert all(timedelta(0) <= wait < 30 * SECOND for wait in waits)
    assert len(set(waits)) == 5


async def test_the_settings_and_the_queue_give_what_a_schedule_leaves_open(db: Database) -> None:
    await db.run(db.store.settings.set("max_attempts", 7, BY))
    await db.run(db.store.queues.configure("own", BY, lease=None, max_attempts=2))
    await created(db, a_schedule("a"))
    await db.run(db.store.schedules.create(a_schedule("b", job=NewJob("t", queue="own")), BY))
    db.clock.advance(MINUTE)
    await fire(db)
    assert {job["queue"]: job["max_attempts"] for job in await jobs(db)} == {"q": 7, "own": 2}


async def test_a_backlog_of_ticks_keeps_no_other_schedule_waiting(db: Database) -> None:
    await created(db, a_schedule("seconds", timing=Timing(every=SECOND), missed=Missed.SKIP))
    db.clock.now = NOON + 2 * HOUR - MINUTE
    await db.run(db.store.schedules.create(a_schedule("punctual"), BY))
    db.clock.now = NOON + 2 * HOUR
    firing = await db.run(db.store.ticks.fire())
    assert firing.ticks <= 1000
    assert await outcomes(db, "punctual") == [(120, "fired")]

    assert await fire(db) == 7200 + 1 - firing.ticks
    assert len(await ticks(db, "seconds")) == 7200


async def test_below_a_floor_nothing_is_looked_for(db: Database) -> None:
    await created(db)
    db.clock.now = NOON + 3 * MINUTE
    floor = db.clock.now - MINUTE
    assert (await db.run(db.store.ticks.fire(floor=floor))).ticks == 0
    assert (await db.run(db.store.ticks.fire())).ticks == 3


async def test_a_fired_job_wakes_those_who_listen(db: Database) -> None:
    await created(db)
    listener = await db.party("listener")
    await listener.connection.execute(f"LISTEN {db.store.jobs.channel}".encode())
    db.clock.advance(MINUTE)
    await db.run(db.store.ticks.fire())
    heard = [n.payload async for n in listener.connection.notifies(timeout=1, stop_after=1)]
    assert heard == ["q"]


async def test_a_tick_outlives_its_schedule_and_is_not_repeated(db: Database) -> None:
    await created(db)
    db.clock.advance(MINUTE)
    await fire(db)
    await db.run(db.store.schedules.delete("s", BY))
    db.clock.now = NOON
    await db.run(db.store.schedules.create(a_schedule(), BY))
    db.clock.advance(MINUTE)
    await fire(db)
    assert await run_minutes(db) == [1]


async def test_ticks_are_forgotten_after_their_time(db: Database) -> None:
    """Also those of a schedule that is gone, and more than one statement takes."""
    await created(db)
    db.clock.now = NOON + 5 * MINUTE
    await fire(db)
    await db.fetch(
        "INSERT INTO tenure.schedule_tick SELECT 'gone', $1 - n * interval '1 hour', $1, NULL,"
        " 'skipped', 'missed' FROM generate_series(1, 1500) AS n",
        NOON,
    )
    db.clock.now = NOON + 30 * 24 * HOUR + 3 * MINUTE
    assert (await db.run(db.store.maintenance.maintain())).pruned_ticks == 1500
    assert await ticks(db, "gone") == []
    db.clock.advance(3 * MINUTE)
    assert (await db.run(db.store.maintenance.maintain())).pruned_ticks == 5


async def test_what_a_backfill_recorded_of_long_ago_is_not_forgotten_at_once(db: Database) -> None:
    """Else the same backfill would make the same jobs again."""
    await created(db)
    long_ago = NOON - 90 * 24 * HOUR
    await backfill(db, [long_ago])
    db.clock.advance(29 * 24 * HOUR)
    assert (await db.run(db.store.maintenance.maintain())).pruned_ticks == 0
    db.clock.advance(2 * 24 * HOUR)
    assert (await db.run(db.store.maintenance.maintain())).pruned_ticks == 1
