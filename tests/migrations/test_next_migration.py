"""The next migration, on top of this release's: made up here, so that its rules are tested now.

It only adds (expand), so this release plays the previous one: it works on the newer schema, also
while the migration runs. What takes away (contract) comes later, and is marked as breaking."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import ended
from support.store import A, lanes
from tenure._model.job import NewJob
from tenure._model.lease import SettleStatus
from tenure._store.migrations import Migration, Script, check
from tenure._store.postgres.schema import migrations
from tenure.errors import SchemaTooNew, SchemaTooOld
from tests.migrations.catalog import catalog

if TYPE_CHECKING:
    from support.store import Database, Party

EXPAND = Migration(
    len(migrations()) + 1,
    "expand",
    Script(
        "ALTER TABLE /*schema.*/job ADD COLUMN next_column text NOT NULL DEFAULT '';"
        "ALTER TABLE /*schema.*/attempt ADD COLUMN next_column integer",
        transaction=True,
        breaking=False,
    ),
    Script(
        "ALTER TABLE /*schema.*/attempt DROP COLUMN next_column;"
        "ALTER TABLE /*schema.*/job DROP COLUMN next_column",
        transaction=True,
        breaking=True,
    ),
)
CONTRACT = Migration(
    EXPAND.version + 1,
    "contract",
    Script("ALTER TABLE /*schema.*/job DROP COLUMN awaited", transaction=True, breaking=True),
    Script(
        "ALTER TABLE /*schema.*/job ADD COLUMN awaited boolean NOT NULL DEFAULT false",
        transaction=True,
        breaking=False,
    ),
)
NEXT = [*migrations(), EXPAND]
AFTER_NEXT = [*NEXT, CONTRACT]


async def run_one_job(db: Database, party: Party) -> None:
    """Enqueue, claim and complete, as this release does."""
    await party.run(db.real.jobs.enqueue([NewJob("work", queue="mail")]))
    claims = await party.run(db.real.leases.claim(lanes("mail"), count=1, worker=A))
    [lease] = [job.lease for job in claims.jobs]
    answer = SettleStatus.BUSY
    while answer is SettleStatus.BUSY:  # the migration has the table, and comes first
        [result] = await party.run(db.real.settlement.settle([ended(lease)]))
        answer = result.answer
    assert answer is SettleStatus.SETTLED


async def test_this_release_works_on_the_next_schema(bare: Database) -> None:
    await bare.run(bare.real.install())
    assert await bare.run(bare.real.schema.migrate(steps=NEXT)) == [f"{EXPAND.name} up"]
    await bare.run(bare.real.schema.check())
    await run_one_job(bare, await bare.party("worker"))


async def test_jobs_run_while_the_next_migration_is_applied_and_taken_back(bare: Database) -> None:
    await bare.run(bare.real.install())
    worker, migrator = await bare.party("worker"), await bare.party("migrator")
    done = asyncio.Event()

    async def work() -> int:
        jobs = 0
        while not done.is_set() or not jobs:
            await run_one_job(bare, worker)
            jobs += 1
        return jobs

    working = asyncio.create_task(work())
    for _ in range(3):
        assert await migrator.run(bare.real.schema.migrate(steps=NEXT)) == [f"{EXPAND.name} up"]
        down = await migrator.run(bare.real.schema.migrate(to=EXPAND.version - 1, steps=NEXT))
        assert down == [f"{EXPAND.name} down"]
    done.set()
    jobs = await working
    [row] = await bare.fetch("SELECT count(*) AS filed FROM tenure.job_archive")
    assert row["filed"] == jobs


async def test_the_next_release_refuses_this_schema_until_it_is_migrated(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate())
    found, breaking = await bare.run(bare.real.schema.version())
    with pytest.raises(SchemaTooOld, match=f"needs {EXPAND.version}; run: tenure db migrate"):
        check(found, needed=EXPAND.version, breaking_since=breaking)
    await bare.run(bare.real.schema.migrate(steps=NEXT))
    found, breaking = await bare.run(bare.real.schema.version())
    check(found, needed=EXPAND.version, breaking_since=breaking)


async def test_this_release_refuses_a_schema_that_has_taken_something_away(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(steps=AFTER_NEXT))
    with pytest.raises(SchemaTooNew, match=f"a breaking change in {CONTRACT.version}"):
        await bare.run(bare.real.schema.check())


async def test_the_next_migrations_there_and_back_leave_this_schema(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate())
    before = sorted(line.partition(" #")[0] for line in catalog(bare.url))
    await bare.run(bare.real.schema.migrate(steps=AFTER_NEXT))
    assert sorted(line.partition(" #")[0] for line in catalog(bare.url)) != before
    await bare.run(bare.real.schema.migrate(to=len(migrations()), steps=AFTER_NEXT))
    assert sorted(line.partition(" #")[0] for line in catalog(bare.url)) == before
