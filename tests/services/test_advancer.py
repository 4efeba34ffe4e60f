"""The advancer, one pass at a time: a chunk when it is due, and rest until the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.race_helpers import BY, dead_letter
from tenure._model.operation import Filter, NewOperation, OperationKind, OperationState
from tenure._services.operations import OperationRunner
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from tenure._model.operation import OperationRow
    from tests.services.bench import Bench


def advancer(bench: Bench) -> OperationRunner:
    return OperationRunner(
        bench.db.store, bench.link("presence"), bench.link("advancer"), defaults=bench.defaults
    )


async def start(bench: Bench, jobs: int) -> OperationRow:
    """A retry of this many dead letters, two at a time, four a second."""
    for _ in range(jobs):
        await dead_letter(bench.db)
    new = NewOperation(kind=OperationKind.RETRY, filter=Filter(), rate=4)
    return await bench.db.run(bench.db.store.operations.start(new, BY))


async def connected(bench: Bench) -> set[str]:
    rows = await bench.db.fetch(
        "SELECT application_name AS name FROM pg_stat_activity "
        "WHERE application_name IN ('presence', 'advancer')"
    )
    return {row["name"] for row in rows}


async def test_chunks_are_done_as_they_fall_due_until_none_is_left(bench: Bench) -> None:
    """Shows R15."""
    operation = await start(bench, 3)
    one = advancer(bench)
    assert [await one.tick(), await one.tick()] == [2, 0]
    assert 0.4 < one._next_delay() <= 0.52
    bench.advance(0.5)
    assert [await one.tick(), await one.tick()] == [1, 0]
    row = await bench.db.run(bench.db.store.operations.get(operation.id))
    assert row is not None
    assert row.state is OperationState.DONE
    await one.close()


async def test_with_nothing_to_do_it_keeps_no_connection_of_its_own(bench: Bench) -> None:
    one = advancer(bench)
    assert await one.tick() == 0
    assert 0.8 <= one._next_delay() <= 1.2
    assert await connected(bench) == {"presence"}

    await start(bench, 1)
    assert await one.tick() == 1
    assert await connected(bench) == {"presence", "advancer"}
    assert await one.tick() == 0
    await bench.db.until_gone("advancer")
    await one.close()


async def test_it_comes_back_soon_where_another_one_is_at_it(bench: Bench) -> None:
    await start(bench, 4)
    one, party = advancer(bench), await bench.db.party("another")
    async with party.transaction() as tx:
        assert await tx.run(bench.db.store.operations.run_chunk()) == 2
        assert await one.tick() == 0
        assert one._next_delay() <= 0.12
    await one.close()


async def test_missing_database_is_logged_once_and_it_continues(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await start(bench, 1)
    looking, working = bench.link("presence"), bench.link("advancer")
    one = OperationRunner(bench.db.store, looking, working, defaults=bench.defaults)
    working.cut = True
    with pytest.raises(Unreachable):
        await one.tick()
    assert [await one._attempt(), await one._attempt()] == [0, 0]
    assert caplog.text.count("advancer: cut by the test; trying again") == 1
    working.cut = False
    assert await one._attempt() == 1
    await one.close()
