"""Operations in a crowd: one chunk at a time, an abort that waits for it, rows that are locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.race_helpers import BY, dead_letter, enqueued, state, waiting
from support.store import SECOND
from tenure._model.job import State
from tenure._model.operation import (
    Filter,
    ItemOutcome,
    NewOperation,
    OperationKind,
    OperationState,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.operation import OperationRow


async def start(db: Database, kind: OperationKind, *, rate: int = 4) -> OperationRow:
    new = NewOperation(kind=kind, filter=Filter(), rate=rate)
    return await db.run(db.store.operations.start(new, BY))


async def read(db: Database, operation_id: int) -> OperationRow:
    row = await db.run(db.store.operations.get(operation_id))
    assert row is not None
    return row


async def test_of_two_processes_at_one_operation_the_second_passes_it_over(db: Database) -> None:
    """It does not wait: there may be another operation to do. Shows R15."""
    dead = [await dead_letter(db) for _ in range(4)]
    operation = await start(db, OperationKind.RETRY)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        assert await tx.run(db.store.operations.run_chunk()) == 2
        assert await other.run(db.store.operations.run_chunk()) == 0

    assert [await state(db, job) for job in dead] == [State.QUEUED] * 2 + [State.FAILED] * 2
    assert await other.run(db.store.operations.run_chunk()) == 0
    db.clock.advance(SECOND / 2)
    assert await other.run(db.store.operations.run_chunk()) == 2
    assert (await read(db, operation.id)).outcomes == {ItemOutcome.RETRIED: 4}


async def test_a_chunk_that_is_rolled_back_is_done_again_by_another(db: Database) -> None:
    """A process that dies takes its chunk with it: no item is half done. Shows R15."""
    dead = await dead_letter(db)
    operation = await start(db, OperationKind.RETRY)
    doomed, other = await db.party("doomed"), await db.party("other")

    await doomed.connection.execute("BEGIN")
    async with doomed.transaction() as tx:
        assert await tx.run(db.store.operations.run_chunk()) == 1
    await doomed.connection.close()
    await db.until_gone("doomed")

    assert await state(db, dead) is State.FAILED
    assert (await read(db, operation.id)).done == 0
    assert await other.run(db.store.operations.run_chunk()) == 1
    assert await state(db, dead) is State.QUEUED


async def test_an_abort_waits_for_the_chunk_that_is_being_done_and_for_no_other(
    db: Database,
) -> None:
    """Once it has answered, nothing more is done. Shows R36."""
    dead = [await dead_letter(db) for _ in range(4)]
    operation = await start(db, OperationKind.RETRY)
    worker, operator = await db.party("worker"), await db.party("operator")

    async with worker.transaction() as tx:
        assert await tx.run(db.store.operations.run_chunk()) == 2
        steer = db.store.operations.steer(operation.id, OperationState.ABORTED, BY)
        abort = await waiting(db, operator, steer)

    aborted = await abort
    assert (aborted.state, aborted.done) == (OperationState.ABORTED, 2)
    db.clock.advance(SECOND)
    assert await worker.run(db.store.operations.run_chunk()) == 0
    assert [await state(db, job) for job in dead] == [State.QUEUED] * 2 + [State.FAILED] * 2


async def test_a_row_that_stays_locked_costs_its_own_item_alone(db: Database) -> None:
    """One long transaction must not keep ten thousand others waiting. Shows R36."""
    jobs = await enqueued(db, 4)
    operation = await start(db, OperationKind.CANCEL, rate=8)
    holder, worker = await db.party("holder"), await db.party("worker")

    async with holder.transaction():
        await holder.connection.execute(
            "SELECT FROM tenure.job WHERE id = %s FOR UPDATE", [jobs[2]]
        )
        for _ in range(12):
            db.clock.advance(SECOND)
            await worker.run(db.store.operations.run_chunk())
        row = await read(db, operation.id)
        assert (row.state, row.outcomes) == (
            OperationState.DONE,
            {ItemOutcome.CANCELLED: 3, ItemOutcome.BUSY: 1},
        )
    assert await state(db, jobs[2]) is State.QUEUED
