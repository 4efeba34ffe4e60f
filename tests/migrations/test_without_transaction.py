"""Scripts that say `transaction: none`: built beside the work, and safe to send again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.migrations.catalog import catalog
from tests.migrations.steps import STEPS, recorded, until_patient, until_waited

if TYPE_CHECKING:
    from support.store import Database


def index_lines(db: Database) -> list[str]:
    return [line.strip() for line in catalog(db.url) if "thing_odd_idx" in line]


async def test_an_index_is_built_concurrently_and_recorded(bare: Database) -> None:
    applied = await bare.run(bare.real.schema.migrate(steps=STEPS))
    assert applied == ["001_thing up", "002_thing_index up", "003_thing_name up"]
    [line] = index_lines(bare)
    assert "valid t" in line
    assert (2, "002_thing_index", False) in await recorded(bare)


async def test_an_index_is_dropped_concurrently_and_forgotten(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(to=2, steps=STEPS))
    assert await bare.run(bare.real.schema.migrate(to=1, steps=STEPS)) == ["002_thing_index down"]
    assert index_lines(bare) == []
    assert await recorded(bare) == [(1, "001_thing", False)]


async def test_others_write_while_an_index_is_built(bare: Database) -> None:
    writer, migrator = await bare.caller("writer"), await bare.party("migrator")
    await migrator.run(bare.real.schema.migrate(to=1, steps=STEPS))
    async with writer.transaction():
        await writer.connection.execute("INSERT INTO tenure.thing VALUES (101)")
        building = asyncio.create_task(migrator.run(bare.real.schema.migrate(to=2, steps=STEPS)))
        await bare.until_blocked("migrator")
        await bare.fetch("INSERT INTO tenure.thing VALUES (102)")
    assert await building == ["002_thing_index up"]


@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
async def test_an_index_waits_for_a_long_transaction_past_the_limits_of_our_statements(
    bare: Database, limit: str
) -> None:
    """Given up half way, it would leave an invalid index that the next try stumbles over."""
    writer = await bare.caller("writer")
    migrator = await bare.party("migrator", **{limit: "100ms"})
    await migrator.run(bare.real.schema.migrate(to=1, steps=STEPS))
    async with writer.transaction():
        await writer.connection.execute("INSERT INTO tenure.thing VALUES (101)")
        building = asyncio.create_task(migrator.run(bare.real.schema.migrate(to=2, steps=STEPS)))
        await until_waited(bare, "migrator", building)
    assert await building == ["002_thing_index up"]
    [line] = index_lines(bare)
    assert "valid t" in line


async def test_a_connections_own_limits_are_back_after_the_script(bare: Database) -> None:
    migrator = await bare.party("migrator", lock_timeout="5s", statement_timeout="10s")
    await migrator.run(bare.real.schema.migrate(steps=STEPS))
    cursor = await migrator.connection.execute(
        "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
    )
    assert await cursor.fetchone() == ("5s", "10s")


async def test_two_migrators_build_an_index_once(bare: Database) -> None:
    writer = await bare.caller("writer")
    first, second = await bare.party("first"), await bare.party("second")
    await first.run(bare.real.schema.migrate(to=1, steps=STEPS))
    async with writer.transaction():
        await writer.connection.execute("INSERT INTO tenure.thing VALUES (101)")
        building = asyncio.create_task(first.run(bare.real.schema.migrate(to=2, steps=STEPS)))
        await bare.until_blocked("first")
        waiting = asyncio.create_task(second.run(bare.real.schema.migrate(to=2, steps=STEPS)))
        await until_patient(bare, "second")
    answers = await asyncio.gather(building, waiting)
    assert sorted(len(answer) for answer in answers) == [0, 1]
    assert await recorded(bare) == [(1, "001_thing", False), (2, "002_thing_index", False)]
