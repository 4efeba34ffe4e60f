"""What tests of schedules do: make one, let time pass, see which ticks and jobs there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tenure._model.job import NewJob
from tenure._model.operation import NewBackfill
from tenure._model.schedule import NewSchedule, Policy, Timing
from tests.conformance.acts import BY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.operation import OperationRow
    from tenure._model.schedule import ScheduleRow, TickRow

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
NOON = datetime(2027, 3, 27, 12, tzinfo=UTC)


def a_schedule(
    name: str = "s", *, job: NewJob | None = None, timing: Timing | None = None, **policy: Any
) -> NewSchedule:
    """A schedule of the queue `q` (default: each minute)."""
    return NewSchedule(
        name=name,
        timing=timing or Timing(every=MINUTE),
        job=job or NewJob("t", queue="q", args={"n": 1}),
        policy=Policy(**policy),
    )


async def created(db: Database, schedule: NewSchedule | None = None) -> ScheduleRow:
    """A schedule that is there, made at noon."""
    db.clock.now = NOON
    return await db.run(db.store.schedules.create(schedule or a_schedule(), BY))


async def fire(db: Database) -> int:
    """Fire until nothing is due; answers with the number of ticks."""
    done = 0
    while firing := (await db.run(db.store.ticks.fire())).ticks:
        done += firing
    return done


async def backfill(db: Database, fire_ats: Sequence[datetime], name: str = "s") -> OperationRow:
    """A backfill of these ticks that was done at once, without waiting for its rate."""
    new = NewBackfill(
        schedule=name,
        queue="q",
        since=fire_ats[0],
        until=fire_ats[-1],
        fire_ats=fire_ats,
        rate=10_000,
    )
    started = await db.run(db.store.operations.start_backfill(new, BY))
    while await db.run(db.store.operations.run_chunk()):
        pass
    row = await db.run(db.store.operations.get(started.id))
    assert row is not None
    return row


async def ticks(db: Database, name: str = "s") -> list[TickRow]:
    """All ticks, oldest first."""
    return list(await db.run(db.store.ticks.list(name, count=100_000)))[::-1]


async def outcomes(db: Database, name: str = "s") -> list[tuple[int, str]]:
    """The result of each tick: minutes since noon, and the outcome or its reason."""
    return [
        (int((tick.fire_at - NOON) / MINUTE), tick.reason or tick.outcome)
        for tick in await ticks(db, name)
    ]


async def jobs(db: Database) -> list[dict[str, Any]]:
    """The jobs that are queued, as their rows say."""
    return await db.fetch(
        "SELECT id, queue, task, args, priority, run_at, created_at, max_attempts, lease, meta"
        " FROM tenure.job ORDER BY id"
    )


async def run_minutes(db: Database) -> list[int]:
    """The ticks that made jobs, by the jobs' own word: minutes since noon."""
    return [
        int((datetime.fromisoformat(job["meta"]["tick_at"]) - NOON) / MINUTE)
        for job in await jobs(db)
    ]
