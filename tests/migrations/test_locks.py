"""Migrating while others are at work: two migrators at once, and tables that are in use."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tenure._store.postgres import schema
from tenure.errors import QueryFailed
from tests.migrations.catalog import catalog
from tests.migrations.steps import STEPS, recorded, until_waited
from tests.timing import amedian

if TYPE_CHECKING:
    from support.store import Database

LOCK_TIMEOUT = 2.0


async def query_of(db: Database, name: str) -> str:
    """What this connection is at, as the server says."""
    rows = await db.fetch("SELECT query FROM pg_stat_activity WHERE application_name = $1", name)
    query: str = rows[0]["query"]
    return query


async def two_migrators(bare: Database) -> tuple[list[str], list[str]]:
    """The first has not committed when the second begins; answers with what each applied."""
    first, second = await bare.caller("first"), await bare.party("second")
    await second.run(bare.real.schema.migrate(to=0))
    async with first.transaction() as migrating:
        ours = list(await migrating.run(bare.real.schema.migrate()))
        waiting = asyncio.create_task(second.run(bare.real.schema.migrate()))
        await bare.until_blocked("second")
        assert "LOCK TABLE tenure.schema_version" in await query_of(bare, "second")
    return ours, list(await waiting)


async def test_a_second_migrator_waits_for_the_first_and_finds_the_work_done(
    bare: Database,
) -> None:
    await two_migrators(bare)
    known = [(m.version, m.name, m.up.breaking) for m in schema.migrations()]
    assert await recorded(bare) == known
    await bare.run(bare.real.schema.check())


async def test_a_second_migrator_answers_with_what_it_applied_itself(bare: Database) -> None:
    ours, theirs = await two_migrators(bare)
    assert ours == [f"{migration.name} up" for migration in schema.migrations()]
    assert theirs == []


async def test_two_migrators_of_an_empty_database_both_succeed(bare: Database) -> None:
    """Neither finds the schema; the second waits for the first one's."""
    first, second = await bare.caller("first"), await bare.party("second")
    async with first.transaction() as migrating:
        await migrating.run(bare.real.schema.migrate(to=1, steps=STEPS))
        waiting = asyncio.create_task(second.run(bare.real.schema.migrate(to=1, steps=STEPS)))
        await bare.until_blocked("second")
    await waiting
    assert await recorded(bare) == [(1, "001_thing", False)]


@pytest.mark.timing
async def test_a_migration_of_a_table_in_use_lets_others_pass_and_is_tried_again(
    bare: Database,
) -> None:
    """The user of the table stays. A later reader waits no longer than the lock timeout."""
    user, migrator = await bare.caller("user"), await bare.party("migrator")
    await migrator.run(bare.real.schema.migrate(to=2, steps=STEPS))
    async with user.transaction():
        await user.connection.execute("SELECT FROM tenure.thing")
        migrating = asyncio.create_task(migrator.run(bare.real.schema.migrate(steps=STEPS)))

        async def read() -> float:
            await bare.until_blocked("migrator")
            began = time.monotonic()
            [row] = await bare.fetch("SELECT count(*) FROM tenure.thing")
            assert row["count"] == 100
            return time.monotonic() - began

        assert await amedian(read) < LOCK_TIMEOUT + 2
        assert not migrating.done()
        await bare.until_blocked("migrator")
    assert await migrating == ["003_thing_name up"]
    assert await bare.run(bare.real.schema.version()) == (3, 3)


async def test_a_migration_that_never_gets_its_lock_gives_up_and_leaves_nothing(
    bare: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_LOCK_TRIES", 1)
    user, migrator = await bare.caller("user"), await bare.party("migrator")
    await migrator.run(bare.real.schema.migrate(to=2, steps=STEPS))
    before = catalog(bare.url)
    async with user.transaction():
        await user.connection.execute("SELECT FROM tenure.thing")
        with pytest.raises(QueryFailed) as refused:
            await migrator.run(bare.real.schema.migrate(steps=STEPS))
    assert refused.value.is_conflict
    assert catalog(bare.url) == before


async def test_a_migration_may_take_longer_than_a_statement_of_ours(bare: Database) -> None:
    """The wait for the first migrator stands for any long statement."""
    first = await bare.caller("first")
    second = await bare.party("second", statement_timeout="100ms")
    await second.run(bare.real.schema.migrate(to=0, steps=STEPS))
    async with first.transaction():
        await first.connection.execute("LOCK TABLE tenure.schema_version IN EXCLUSIVE MODE")
        waiting = asyncio.create_task(second.run(bare.real.schema.migrate(to=1, steps=STEPS)))
        await until_waited(bare, "second", waiting)
    assert await waiting == ["001_thing up"]
