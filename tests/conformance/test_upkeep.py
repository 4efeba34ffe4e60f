"""Upkeep: room for the days ahead, and what is past its retention cleared."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tests.conformance.acts import (
    BY,
    DAY,
    ERROR,
    count,
    dead_letter,
    enqueue,
    get,
    running,
    settle,
)

if TYPE_CHECKING:
    from datetime import date

    from support.store import Database
    from tenure._model.lease import ClaimedJob

MINUTE = 60 * SECOND


async def days(db: Database, history: str) -> list[date]:
    """The days for which a history has an attached partition."""
    rows = await db.fetch(
        "SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day FROM pg_inherits AS i "
        "JOIN pg_class AS c ON c.oid = i.inhrelid "
        "WHERE i.inhparent = $1::regclass AND NOT i.inhdetachpending ORDER BY 1",
        f"tenure.{history}",
    )
    return [row["day"] for row in rows]


async def completed(db: Database) -> ClaimedJob:
    """A completed job with an item."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))
    await settle(db, claimed, Succeeded())
    return claimed


@pytest.mark.parametrize("history", ["attempt", "job_archive"])
async def test_there_is_room_for_two_weeks_ahead(db: Database, history: str) -> None:
    start = db.clock.now.date()
    db.clock.advance(5 * DAY)
    await db.run(db.store.maintenance.maintain())

    assert await days(db, history) == [start + n * DAY for n in range(5 + 14 + 1)]


async def test_upkeep_that_has_nothing_to_do_does_nothing(db: Database) -> None:
    db.clock.advance(20 * DAY)
    first = await db.run(db.store.maintenance.maintain())
    again = await db.run(db.store.maintenance.maintain())

    assert first.done
    assert first.left == []
    assert [line for line in again.done if "CREATE" in line] == []
    assert (await db.run(db.store.maintenance.maintain())).done == []


async def test_a_day_past_its_retention_is_dropped_with_its_items(db: Database) -> None:
    """Shows R16."""
    old = await completed(db)
    live = await running(db)
    await db.run(db.store.leases.progress(live.lease, items={"b": 2}))
    db.clock.advance(7 * DAY)
    await db.run(db.store.maintenance.maintain())
    assert (await get(db, old.job.id)).state is State.COMPLETED
    assert len(await db.run(db.store.jobs.attempts(old.job.id))) == 1
    assert await db.run(db.store.jobs.items(old.job.id)) == {"a": 1}

    db.clock.advance(DAY)
    young = await completed(db)
    await db.run(db.store.maintenance.maintain())
    assert await db.run(db.store.jobs.get(old.job.id)) is None
    assert await db.run(db.store.jobs.attempts(old.job.id)) == []
    assert await db.run(db.store.jobs.items(old.job.id)) == {}
    assert await db.run(db.store.jobs.items(live.job.id)) == {"b": 2}
    assert await db.run(db.store.jobs.items(young.job.id)) == {"a": 1}
    assert (await get(db, young.job.id)).state is State.COMPLETED


async def test_retention_is_a_setting(db: Database) -> None:
    """Shows R38."""
    job = await completed(db)
    await db.run(db.store.settings.set("keep_archive_days", 20, BY))
    await db.run(db.store.settings.set("keep_attempts_days", 2, BY))
    db.clock.advance(3 * DAY)
    await db.run(db.store.maintenance.maintain())

    assert await db.run(db.store.jobs.attempts(job.job.id)) == []
    assert (await get(db, job.job.id)).state is State.COMPLETED
    assert await db.run(db.store.jobs.items(job.job.id)) == {"a": 1}


async def test_there_is_always_a_day_to_file_under(db: Database) -> None:
    """Upkeep that was away for long finds the newest day past its retention, and keeps it."""
    db.clock.advance(100 * DAY)
    claimed = await running(db)
    await settle(db, claimed, Succeeded("x"))
    await db.run(db.store.maintenance.maintain())

    assert (await get(db, claimed.job.id)).result == "x"
    assert db.clock.now.date() in await days(db, "attempt")


async def test_dead_letters_are_kept_for_long_and_then_pruned_with_their_items(
    db: Database,
) -> None:
    """Shows R15."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))
    await settle(db, claimed, Failed(ERROR, retryable=False))
    db.clock.advance(DAY)
    younger = await dead_letter(db)
    db.clock.advance(89 * DAY)
    assert (await db.run(db.store.maintenance.maintain())).pruned_failed == 0

    db.clock.advance(MINUTE)
    assert (await db.run(db.store.maintenance.maintain())).pruned_failed == 1
    assert await db.run(db.store.jobs.get(claimed.job.id)) is None
    assert await count(db, "job_item") == 0
    assert (await get(db, younger)).state is State.FAILED


async def test_unused_keys_are_pruned(db: Database) -> None:
    """Shows R17."""
    for key, key_for in (("gone", None), ("kept", timedelta(hours=1))):
        claimed = await running(db, key=key, key_for=key_for)
        await settle(db, claimed, Succeeded())
    await enqueue(db, key="alive")
    db.clock.advance(MINUTE)

    assert (await db.run(db.store.maintenance.maintain())).pruned_keys == 1
    rows = await db.fetch("SELECT key FROM tenure.job_key ORDER BY key")
    assert [row["key"] for row in rows] == ["alive", "kept"]
    db.clock.advance(timedelta(hours=1))
    assert (await db.run(db.store.maintenance.maintain())).pruned_keys == 1


async def test_a_day_that_is_being_read_is_left_for_the_next_time(db: Database) -> None:
    old = await completed(db)
    first = db.clock.now.date()
    hasty = await db.party("hasty", lock_timeout="100ms")
    reader = await db.caller("reader")
    db.clock.advance(8 * DAY)
    async with reader.transaction():
        await reader.connection.execute("SELECT FROM tenure.job_archive")
        upkept = await hasty.run(db.store.maintenance.maintain())
        assert [line for line in upkept.left if "job_archive" in line]
        assert (await settle(db, await running(db), Succeeded())).state is State.COMPLETED
        assert await count(db, "attempt", f"filed_on = '{first}'") == 0

    upkept = await hasty.run(db.store.maintenance.maintain())
    assert upkept.left == []
    assert await db.run(db.store.jobs.get(old.job.id)) is None
    rows = await db.fetch(
        "SELECT relname FROM pg_class WHERE relname = $1", f"job_archive_{first:%Y%m%d}"
    )
    assert rows == []
