"""Up, down and up again: the same schema each time, and nothing done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure._store import migrations as migrate
from tenure._store.postgres.schema import migrations
from tenure.errors import InvalidValue, QueryFailed, SchemaTooNew
from tests.migrations.catalog import catalog
from tests.migrations.steps import FIXTURES, STEPS, recorded

if TYPE_CHECKING:
    from support.store import Database


async def test_up_down_and_up_again_is_the_same_schema(bare: Database) -> None:
    names = [migration.name for migration in migrations()]
    assert await bare.run(bare.real.schema.migrate()) == [f"{name} up" for name in names]
    before = catalog(bare.url)
    down = await bare.run(bare.real.schema.migrate(to=0))
    assert down == [f"{name} down" for name in reversed(names)]
    await bare.run(bare.real.schema.migrate())
    assert catalog(bare.url) == before


async def test_down_leaves_nothing_but_the_record_of_versions(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(to=0))
    before = catalog(bare.url)
    await bare.run(bare.real.install())
    await bare.run(bare.real.schema.migrate(to=0))
    assert catalog(bare.url) == before
    assert all("schema_version" in line for line in before)
    assert await recorded(bare) == []


async def test_applying_twice_does_nothing(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate())
    before = catalog(bare.url), await recorded(bare)
    assert await bare.run(bare.real.schema.migrate()) == []
    assert (catalog(bare.url), await recorded(bare)) == before


async def test_installing_twice_does_nothing(bare: Database) -> None:
    await bare.run(bare.real.install())
    before = catalog(bare.url)
    assert await bare.run(bare.real.install()) == []
    assert catalog(bare.url) == before


async def test_each_step_there_and_back_leaves_what_was_before_it(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(to=0, steps=STEPS))
    for version in range(len(STEPS)):
        before = catalog(bare.url)
        await bare.run(bare.real.schema.migrate(to=version + 1, steps=STEPS))
        after = catalog(bare.url)
        assert after != before
        await bare.run(bare.real.schema.migrate(to=version, steps=STEPS))
        assert catalog(bare.url) == before
        await bare.run(bare.real.schema.migrate(to=version + 1, steps=STEPS))
        assert catalog(bare.url) == after


async def test_what_was_applied_is_recorded_with_whether_it_breaks(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(steps=STEPS))
    assert await recorded(bare) == [
        (1, "001_thing", False),
        (2, "002_thing_index", False),
        (3, "003_thing_name", True),
    ]
    assert await bare.run(bare.real.schema.version()) == (3, 3)
    await bare.run(bare.real.schema.migrate(to=2, steps=STEPS))
    assert await bare.run(bare.real.schema.version()) == (2, None)


async def test_a_step_that_fails_leaves_nothing_of_itself(bare: Database) -> None:
    steps = migrate.load(FIXTURES / "broken")
    with pytest.raises(QueryFailed, match="nowhere"):
        await bare.run(bare.real.schema.migrate(steps=steps))
    assert await recorded(bare) == [(1, "001_thing", False)]
    assert not any("half" in line for line in catalog(bare.url))


async def test_an_older_release_leaves_a_newer_schema_alone(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(steps=STEPS))
    before = catalog(bare.url)
    assert await bare.run(bare.real.schema.migrate(steps=STEPS[:1])) == []
    assert catalog(bare.url) == before


async def test_an_older_release_refuses_to_take_back_what_it_does_not_know(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(steps=STEPS))
    with pytest.raises(SchemaTooNew, match="3"):
        await bare.run(bare.real.schema.migrate(to=0, steps=STEPS[:1]))
    assert len(await recorded(bare)) == 3


@pytest.mark.parametrize("goal", [-1, 4])
async def test_a_version_that_there_is_not_is_refused(bare: Database, goal: int) -> None:
    await bare.run(bare.real.schema.migrate(to=2, steps=STEPS))
    before = catalog(bare.url)
    with pytest.raises(InvalidValue, match=str(goal)):
        await bare.run(bare.real.schema.migrate(to=goal, steps=STEPS))
    assert catalog(bare.url) == before
