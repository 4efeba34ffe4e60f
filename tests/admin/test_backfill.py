"""A backfill: jobs for past ticks, as often as it is asked for, and each once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.admin import By, Filter, State
from tenure.errors import InvalidValue
from tenure.types import OperationState, TickReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure.admin import Schedules
    from tenure.types import OperationRow

ANA = By("ana", source="suite", reason="a trial")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def app(db: Database) -> Iterator[Tenure]:
    app = Tenure(db.url, redis="")
    yield app
    app.close()


@pytest.fixture
def schedules(app: Tenure) -> Schedules:
    """The verbs, and one schedule that is due every minute."""
    app.admin.schedules.create("often", "work", ANA, every=60)
    return app.admin.schedules


@pytest.fixture
def midnight() -> datetime:
    """The beginning of the day before yesterday."""
    return (datetime.now(UTC) - timedelta(days=2)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )


def jobs(app: Tenure) -> int:
    return len(app.admin.jobs.list(State.QUEUED, count=1000).jobs)


async def finished(db: Database, operation_id: int) -> OperationRow:
    """The operation, when it was done as a worker would; without waiting for its rate."""
    while await db.run(db.real.operations.run_chunk()):
        await db.fetch("UPDATE tenure.operation SET next_at = now() WHERE next_at IS NOT NULL")
    row = await db.run(db.real.operations.get(operation_id))
    assert row is not None
    return row


async def test_past_ticks_make_their_jobs_and_a_second_backfill_none(
    db: Database, app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    """Shows R28."""
    started = schedules.backfill("often", midnight, midnight + HOUR, ANA)
    assert (started.kind, started.total, started.filter.queue) == ("backfill", 61, "default")
    done = await finished(db, started.id)
    assert (done.state, done.outcomes) == (OperationState.DONE, {"fired": 61})
    assert jobs(app) == 61
    assert {tick.reason for tick in schedules.ticks("often")} == {TickReason.BACKFILL}

    again = schedules.backfill("often", midnight - MINUTE, midnight + HOUR, ANA)
    assert again.total == 1
    [change, *_] = app.admin.audit.list("schedule:often")
    assert (change.action, change.actor) == ("schedule.backfill", "ana")


async def test_it_is_paused_and_aborted_and_another_has_the_rest(
    db: Database, app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    """Each chunk is a transaction of its own, so that what is made stays made."""
    until = midnight + timedelta(hours=20)
    started = schedules.backfill("often", midnight, until, ANA, rate=1000)
    assert await db.run(db.real.operations.run_chunk()) == 500
    assert app.admin.operations.pause(started.id, ANA).state is OperationState.PAUSED
    assert await db.run(db.real.operations.run_chunk()) == 0
    app.admin.operations.abort(started.id, ANA)
    assert (jobs(app), started.total) == (500, 1201)
    assert schedules.backfill("often", midnight, until, ANA, dry_run=True).total == 701


def test_a_rehearsal_says_what_would_be_made_and_makes_nothing(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    reported = schedules.backfill("often", midnight, midnight + HOUR, ANA, dry_run=True)
    assert reported.total == 61
    assert (app.admin.operations.list(), schedules.ticks("often")) == ([], [])


def test_what_is_yet_to_come_is_left_to_the_schedule(schedules: Schedules) -> None:
    now = datetime.now(UTC)
    reported = schedules.backfill("often", now - 10 * MINUTE, now + HOUR, ANA)
    assert reported.total in (10, 11)
    with pytest.raises(InvalidValue, match="since must be in the past"):
        schedules.backfill("often", now + HOUR, now + 2 * HOUR, ANA)
    none = schedules.backfill("often", now, now, ANA)
    assert (none.total, none.state) == (0, OperationState.DONE)


async def test_what_is_due_and_not_fired_yet_is_left_to_the_schedule(
    db: Database, app: Tenure, schedules: Schedules
) -> None:
    """Else it would be fired as a backfill: without jitter, and whatever overlaps."""
    row = schedules.get("often")
    assert row is not None
    assert row.next_at is not None
    await db.fetch(
        "UPDATE tenure.schedule SET next_at = next_at - interval '1 hour', created_at = $1",
        str(row.next_at - 2 * HOUR),
    )
    due = row.next_at - HOUR
    reported = schedules.backfill("often", due - MINUTE, due + MINUTE, ANA)
    [item] = app.admin.operations.items(reported.id).items
    assert item.fire_at == due - MINUTE


async def test_async_version_does_the_same(schedules: Schedules, midnight: datetime) -> None:
    reported = await schedules.abackfill("often", midnight, midnight + 10 * HOUR, ANA)
    assert (reported.total, reported.state) == (601, OperationState.PENDING)


def test_contradictory_options_are_refused_before_anything_is_made(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    with pytest.raises(InvalidValue, match="swap them"):
        schedules.backfill("often", midnight, midnight - HOUR, ANA)
    with pytest.raises(InvalidValue, match="since must have a time zone"):
        schedules.backfill("often", midnight.replace(tzinfo=None), midnight, ANA)
    with pytest.raises(InvalidValue, match="schedule 'never' does not exist"):
        schedules.backfill("never", midnight, midnight, ANA)
    with pytest.raises(InvalidValue, match="rate must be 1 to 10,000 jobs per second, got 0"):
        schedules.backfill("often", midnight, midnight, ANA, rate=0)
    with pytest.raises(InvalidValue, match="a backfill belongs to a schedule"):
        app.admin.operations.start("backfill", Filter(), ANA)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="for backfills only"):
        app.admin.operations.start("retry", Filter(schedule="often"), ANA)
    schedules.create("seconds", "work", ANA, every=1)
    with pytest.raises(InvalidValue, match="at most 1,000,000 ticks"):
        schedules.backfill("seconds", midnight - timedelta(days=20), midnight, ANA)
    assert app.admin.operations.list() == []


async def test_ticks_that_may_have_had_a_job_and_are_forgotten_are_not_made_again(
    db: Database, app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    """Of what was before the schedule itself, nothing can have been made."""
    long_ago = midnight - timedelta(days=100)
    assert schedules.backfill("often", long_ago, long_ago + MINUTE, ANA).total == 2
    await db.fetch("UPDATE tenure.schedule SET created_at = $1", str(long_ago))
    with pytest.raises(InvalidValue, match=r"since must be .* or later"):
        schedules.backfill("often", long_ago + HOUR, midnight, ANA)
    since = midnight - timedelta(days=27)
    assert schedules.backfill("often", since, since, ANA).total == 1
    late = long_ago + HOUR
    assert schedules.backfill("often", late, late, ANA, forgotten=True).total == 1
    app.admin.settings.set("keep_ticks_days", 365, ANA)
    assert schedules.backfill("often", late + MINUTE, late + MINUTE, ANA).total == 1
