"""A backfill: jobs for past ticks, as often as it is asked for, and each once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.admin import By, State, TickReason
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure.admin import Schedules

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
    app.schedules.create("often", "work", ANA, every=60)
    return app.schedules


@pytest.fixture
def midnight() -> datetime:
    """The beginning of the day before yesterday."""
    return (datetime.now(UTC) - timedelta(days=2)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )


def jobs(app: Tenure) -> int:
    return len(app.admin.jobs(State.QUEUED, count=1000).jobs)


def test_past_ticks_make_their_jobs_and_a_second_backfill_none(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    [told] = schedules.backfill("often", midnight, midnight + HOUR, ANA)
    assert (told.done, told.total, told.made, told.already) == (61, 61, 61, 0)
    assert told.up_to == midnight + HOUR
    assert jobs(app) == 61
    assert {tick.reason for tick in schedules.ticks("often")} == {TickReason.BACKFILL}

    [again] = schedules.backfill("often", midnight - MINUTE, midnight + HOUR, ANA)
    assert (again.made, again.already) == (1, 61)
    [change, *_] = app.admin.audit("schedule:often")
    assert (change.action, change.actor) == ("schedule.backfill", "ana")


def test_it_goes_on_where_it_was_stopped(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    """Each stretch is a transaction of its own, so that what is made stays made."""
    until = midnight + timedelta(hours=20)
    told = schedules.backfill("often", midnight, until, ANA)
    first = next(told)
    assert (first.done, first.total, first.made) == (500, 1201, 500)
    assert jobs(app) == 500
    assert [each.made for each in schedules.backfill("often", midnight, until, ANA)] == [
        0,
        500,
        701,
    ]


def test_a_rehearsal_says_what_would_be_made_and_makes_nothing(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    [told] = schedules.backfill("often", midnight, midnight + HOUR, ANA, dry_run=True)
    assert told.made == 61
    assert (jobs(app), schedules.ticks("often")) == (0, [])


def test_what_is_yet_to_come_is_left_to_the_schedule(schedules: Schedules) -> None:
    now = datetime.now(UTC)
    [told] = schedules.backfill("often", now - 10 * MINUTE, now + HOUR, ANA)
    assert told.total in (10, 11)
    with pytest.raises(InvalidValue, match="is yet to come"):
        schedules.backfill("often", now + HOUR, now + 2 * HOUR, ANA)
    assert list(schedules.backfill("often", now, now, ANA)) == []


async def test_what_is_due_and_not_fired_yet_is_left_to_the_schedule(
    db: Database, schedules: Schedules
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
    [told] = schedules.backfill("often", due - MINUTE, due + MINUTE, ANA)
    assert (told.total, told.up_to) == (1, due - MINUTE)


async def test_the_async_world_does_the_same(schedules: Schedules, midnight: datetime) -> None:
    told = [
        each async for each in schedules.abackfill("often", midnight, midnight + 10 * HOUR, ANA)
    ]
    assert [(each.done, each.total) for each in told] == [(500, 601), (601, 601)]


def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    with pytest.raises(InvalidValue, match="turn them around"):
        schedules.backfill("often", midnight, midnight - HOUR, ANA)
    with pytest.raises(InvalidValue, match="since has no time zone"):
        schedules.backfill("often", midnight.replace(tzinfo=None), midnight, ANA)
    with pytest.raises(InvalidValue, match="there is no schedule 'never'"):
        schedules.backfill("never", midnight, midnight, ANA)
    schedules.create("seconds", "work", ANA, every=1)
    with pytest.raises(InvalidValue, match="more than 1,000,000 ticks"):
        list(schedules.backfill("seconds", midnight - timedelta(days=20), midnight, ANA))
    assert jobs(app) == 0


async def test_ticks_that_may_have_had_a_job_and_are_forgotten_are_not_made_again(
    db: Database, app: Tenure, schedules: Schedules, midnight: datetime
) -> None:
    """Of what was before the schedule itself, nothing can have been made."""
    long_ago = midnight - timedelta(days=100)
    [told] = schedules.backfill("often", long_ago, long_ago + MINUTE, ANA)
    assert told.made == 2
    await db.fetch("UPDATE tenure.schedule SET created_at = $1", str(long_ago))
    with pytest.raises(InvalidValue, match="are no longer kept"):
        schedules.backfill("often", long_ago + HOUR, midnight, ANA)
    since = midnight - timedelta(days=27)
    assert list(schedules.backfill("often", since, since, ANA))
    late = long_ago + HOUR
    assert list(schedules.backfill("often", late, late, ANA, forgotten=True))
    app.admin.set_setting("keep_ticks_days", 365, ANA)
    assert list(schedules.backfill("often", late + MINUTE, late + MINUTE, ANA))
