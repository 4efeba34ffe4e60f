"""What the tests of operations do again and again: dead letters by the dozen, chunks, steering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure._model.operation import Filter, NewOperation, OperationKind
from tests.conformance.acts import BY, dead_letter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.operation import Changes, OperationItem, OperationRow

ALL = Filter()


async def dead_letters(db: Database, count: int, task: str = "task") -> list[JobId]:
    """This many dead letters."""
    return [await dead_letter(db, task) for _ in range(count)]


async def start(
    db: Database,
    kind: OperationKind = OperationKind.RETRY,
    given: Filter = ALL,
    *,
    rate: int = 4,
    changes: Changes | None = None,
) -> OperationRow:
    """Start an operation; by default a retry of all dead letters, two at a time."""
    new = NewOperation(kind=kind, filter=given, rate=rate, changes=changes)
    return await db.run(db.store.operations.start(new, BY))


async def advance(db: Database) -> int:
    """Do one chunk, if one is due."""
    return await db.run(db.store.operations.run_chunk())


async def finish(db: Database, operation_id: int) -> OperationRow:
    """Do all chunks, each at its time."""
    for _ in range(100):
        row = await read(db, operation_id)
        if row.next_at is None:
            return row
        db.clock.now = max(db.clock.now, row.next_at)
        await advance(db)
    raise AssertionError(f"operation {operation_id} does not end")


async def read(db: Database, operation_id: int) -> OperationRow:
    """The operation, which must be there."""
    row = await db.run(db.store.operations.get(operation_id))
    assert row is not None
    return row


async def items(db: Database, operation_id: int) -> Sequence[OperationItem]:
    """All items of a small operation."""
    page, more = await db.run(db.store.operations.items(operation_id))
    assert more is None
    return page


async def outcomes(db: Database, operation_id: int) -> dict[int, str | None]:
    """The result of each job."""
    found = await items(db, operation_id)
    return {item.job_id: item.outcome for item in found if item.job_id is not None}
