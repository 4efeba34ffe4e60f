"""A schema that does not fit is refused, with the command to run; one that fits is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure._store.migrations import check
from tenure._store.postgres.schema import migrations
from tenure.errors import SchemaTooNew, SchemaTooOld

if TYPE_CHECKING:
    from support.store import Database

OURS = len(migrations())


async def newer(db: Database, version: int, *, breaking: bool) -> None:
    """What a newer release would have left in the record."""
    await db.run(db.real.schema.migrate())
    await db.fetch(
        "INSERT INTO tenure.schema_version VALUES ($1, 'newer', $2, now())", version, breaking
    )


async def test_a_database_without_the_schema_is_too_old(bare: Database) -> None:
    assert await bare.run(bare.real.schema.version()) == (0, None)
    with pytest.raises(SchemaTooOld) as refused:
        await bare.run(bare.real.schema.check())
    assert str(refused.value) == (
        f"the schema is at version 0, this release needs {OURS}; run: tenure db migrate"
    )


async def test_a_schema_that_was_taken_back_is_too_old(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate())
    await bare.run(bare.real.schema.migrate(to=OURS - 1))
    with pytest.raises(SchemaTooOld, match=r"; run: tenure db migrate$"):
        await bare.run(bare.real.schema.check())


async def test_the_schema_of_this_release_is_accepted(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate())
    await bare.run(bare.real.schema.check())


async def test_a_newer_schema_that_breaks_nothing_is_accepted(bare: Database) -> None:
    await newer(bare, OURS + 1, breaking=False)
    await bare.run(bare.real.schema.check())


async def test_a_newer_schema_with_a_breaking_change_is_refused(bare: Database) -> None:
    await newer(bare, OURS + 1, breaking=True)
    with pytest.raises(SchemaTooNew) as refused:
        await bare.run(bare.real.schema.check())
    assert str(refused.value) == (
        f"the schema is at version {OURS + 1} with a breaking change in {OURS + 1}, but "
        f"this release knows only {OURS}; upgrade tenure, or migrate back with the newer release: "
        f"tenure db migrate --to {OURS}"
    )


@pytest.mark.parametrize("breaking", [None, 1, 3, 5])
def test_known_breaking_change_is_accepted(breaking: int | None) -> None:
    check(5, needed=5, breaking_since=breaking)
    check(7, needed=5, breaking_since=breaking)


@pytest.mark.parametrize(("found", "breaking"), [(6, 6), (9, 7)])
def test_a_breaking_change_after_ours_is_one_however_old_it_is(found: int, breaking: int) -> None:
    with pytest.raises(SchemaTooNew, match=f"in {breaking}, but this release knows only 5"):
        check(found, needed=5, breaking_since=breaking)


@pytest.mark.parametrize("breaking", [None, 2])
def test_too_old_comes_before_all_else(breaking: int | None) -> None:
    with pytest.raises(SchemaTooOld, match="at version 4, this release needs 5"):
        check(4, needed=5, breaking_since=breaking)


async def unreleased(db: Database) -> None:
    """What an installation from before the first release has in the record: seven migrations."""
    await db.run(db.real.schema.migrate(to=1))
    await db.fetch("UPDATE tenure.schema_version SET name = '001_lease_store'")
    await db.fetch(
        "INSERT INTO tenure.schema_version "
        "SELECT n, format('%s_made_before', n), false, now() FROM generate_series(2, 7) AS n"
    )


async def test_a_schema_from_before_the_first_release_is_refused_with_what_to_do(
    bare: Database,
) -> None:
    await unreleased(bare)
    for refused_op in (
        bare.real.schema.check(),
        bare.real.schema.migrate(),
        bare.real.schema.migrate(to=0),
    ):
        with pytest.raises(SchemaTooOld) as refused:
            await bare.run(refused_op)
        assert str(refused.value) == (
            "schema tenure is from before the first release; drop it and migrate "
            "again: DROP SCHEMA tenure CASCADE, then tenure db migrate"
        )


async def test_a_schema_from_before_the_first_release_is_dropped_and_migrated_again(
    bare: Database,
) -> None:
    await unreleased(bare)
    await bare.fetch("DROP SCHEMA tenure CASCADE")
    assert await bare.run(bare.real.schema.migrate()) == [f"{m.name} up" for m in migrations()]
    await bare.run(bare.real.schema.check())
