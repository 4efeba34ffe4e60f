"""Maintenance against itself and against a long reader, while settling continues."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from support.race_helpers import claim, ended, job, leases, waiting
from tenure._model.lease import SettleStatus
from tenure._store.steps import RawSql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database, Party
    from tenure._store.steps import Op

DAY = timedelta(days=1)


async def partitions(db: Database) -> set[str]:
    """The days of history, attached or about to be detached."""
    rows = await db.fetch(
        "SELECT c.relname AS name FROM pg_class AS c JOIN pg_namespace AS n "
        "ON n.oid = c.relnamespace WHERE n.nspname = 'tenure' AND c.relkind = 'r' "
        "AND c.relname ~ '^(attempt|job_archive)_[0-9]{8}$'"
    )
    return {row["name"] for row in rows}


def ddl(text: str) -> Op[None]:
    """One statement of upkeep by itself."""
    yield RawSql(text)


async def test_of_two_maintainers_one_makes_a_day_and_the_other_continues(db: Database) -> None:
    """Maintenance runs wherever an owner connects; a collision is not a failure. Shows R34."""
    await db.party("main")
    before = await partitions(db)
    today = db.clock.advance(2 * DAY)
    day = f"{today + 14 * DAY:%Y%m%d}"
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(ddl(f"CREATE TABLE tenure.attempt_{day} (LIKE tenure.attempt INCLUDING ALL)"))
        upkeep = await waiting(db, other, db.store.maintenance.maintain())

    assert any(f"attempt_{day}" in step for step in (await upkeep).left)
    assert len(await partitions(db) - before) == 4
    assert (await db.run(db.store.maintenance.maintain())).left == []


async def finish(db: Database, worker: Party) -> None:
    """Run one job from its enqueue to its end."""
    await worker.run(db.store.jobs.enqueue([job()]))
    [lease] = leases(await worker.run(claim(db.store)))
    [settled] = await worker.run(db.store.settlement.settle([ended(lease)]))
    assert settled.answer is SettleStatus.SETTLED


def of_day(day: str, steps: Sequence[str]) -> list[str]:
    return [step for step in steps if f"job_archive_{day}" in step]


async def test_settling_continues_while_a_long_reader_blocks_a_detach(db: Database) -> None:
    """A plain DROP behind a report would stop every settle until it ends. Shows R34."""
    await db.party("main")
    oldest = f"{db.clock():%Y%m%d}"
    db.clock.advance(8 * DAY)
    reader, upkeep = await db.caller("reader"), await db.party("upkeep", lock_timeout="500ms")
    # A settle that had to queue behind upkeep's lock would fail within a tenth of a second.
    worker = await db.party("worker", lock_timeout="20ms")

    async with reader.connection.transaction():
        await reader.connection.execute("SELECT count(*) FROM tenure.job_archive")
        maintaining = await waiting(db, upkeep, db.store.maintenance.maintain())
        await finish(db, worker)
        while not maintaining.done():
            await finish(db, worker)
        upkept = await maintaining
        assert of_day(oldest, upkept.done) == []
        assert of_day(oldest, upkept.left)

    again = await upkeep.run(db.store.maintenance.maintain())
    assert of_day(oldest, again.left) == []
    assert f"job_archive_{oldest}" not in await partitions(db)


async def test_two_maintainers_behind_one_reader_both_come_to_an_end(db: Database) -> None:
    """The second finds a detach half done, which is not its own and not a failure. Shows R34."""
    await db.party("main")
    oldest = f"{db.clock():%Y%m%d}"
    db.clock.advance(8 * DAY)
    reader, one, other = await db.caller("reader"), await db.party("one"), await db.party("other")

    async with reader.connection.transaction():
        await reader.connection.execute("SELECT count(*) FROM tenure.job_archive")
        first = await waiting(db, one, db.store.maintenance.maintain())
        second = await waiting(db, other, db.store.maintenance.maintain())

    await asyncio.gather(first, second)
    assert not {f"job_archive_{oldest}", f"attempt_{oldest}"} & await partitions(db)


async def test_a_detach_that_was_cut_off_is_finished_by_the_next_upkeep(db: Database) -> None:
    """Half detached, the day takes no more history and must not stay so for ever. Shows R34."""
    await db.party("main")
    oldest = f"{db.clock():%Y%m%d}"
    db.clock.advance(8 * DAY)
    reader, upkeep = await db.caller("reader"), await db.party("upkeep")

    async with reader.connection.transaction():
        await reader.connection.execute("SELECT count(*) FROM tenure.job_archive")
        cut_off = await waiting(db, upkeep, db.store.maintenance.maintain())
        await db.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'upkeep'"
        )
        [ended_badly] = await asyncio.gather(cut_off, return_exceptions=True)
        assert isinstance(ended_badly, Exception)
        assert f"job_archive_{oldest}" in await partitions(db)
        assert await db.fetch("SELECT inhrelid FROM pg_inherits WHERE inhdetachpending")

    assert (await db.run(db.store.maintenance.maintain())).left == []
    assert f"job_archive_{oldest}" not in await partitions(db)
