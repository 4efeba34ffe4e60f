"""The chunks of operations: each is one transaction. Starting and steering are in `operations`."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from tenure._model.ids import JobId
from tenure._model.operation import (
    Changes,
    ItemOutcome,
    OperationKind,
    OperationRow,
    OperationState,
)
from tenure._rules import operations as rules
from tenure._store.port import Ddl, Op, Query, Row, atomically
from tenure._store.postgres.literals import Jsonb
from tenure._store.postgres.operators import Operators
from tenure._store.postgres.ticking import Ticking
from tenure.errors import QueryFailed

# Who aborts an operation waits for its chunk.
_WITHIN = "SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '1s'"
_TOO_SLOW = "57014"
_AGAIN_SOON = timedelta(milliseconds=100)
_AGAIN_LATER = timedelta(seconds=5)
_Done = tuple[list[ItemOutcome], list[JobId | None]]


class Advancing(Ticking, Operators):
    """The part of the store that does the chunks of operations."""

    def next_operation(self) -> Op[tuple[datetime | None, datetime]]:
        """When the next chunk of an operation is due, if any is, and the time now."""
        [row] = yield self._query("next_operation")
        return row["next_at"], row["now"]

    def advance(self) -> Op[int]:
        """Do one chunk of the operation that has been due the longest, in one transaction.

        A chunk that meets a locked row or a value that the database refuses is halved until the
        one to blame is alone; that one gets its outcome, and the operation goes on. What else the
        database refuses puts this operation off, and not the others.
        """
        did = yield from atomically(self._advance())
        if isinstance(did, QueryFailed):
            raise did
        return did

    def _advance(self) -> Op[int | QueryFailed]:
        yield Ddl(_WITHIN)
        rows = yield self._query("due_operation")
        if not rows:
            return 0
        operation, most = operation_row(rows[0]), rows[0]["most"]
        items = yield self._query(
            "operation_items",
            id=operation.id,
            after=operation.done,
            until=operation.total,
            outcome=None,
            count=most or rules.chunk(operation.rate),
        )
        try:
            outcomes, made = yield from self._do(operation, items)
        except QueryFailed as error:
            locked = error.is_conflict or error.sqlstate == _TOO_SLOW
            if not locked and not error.is_data_error:
                yield self._put_off(operation, most, _AGAIN_LATER)
                return error
            if len(items) > 1:
                yield self._put_off(operation, len(items) // 2, _AGAIN_SOON)
                return 0
            outcomes, made = [ItemOutcome.BUSY if locked else ItemOutcome.REFUSED], [None]
        yield self._query(
            "advance",
            id=operation.id,
            places=[item["place"] for item in items],
            outcomes=outcomes,
            counts=Jsonb(Counter(operation.outcomes) + Counter(outcomes)),
            most=rules.grown(most, operation.rate),
            job_ids=made,
        )
        return len(items)

    def _put_off(self, operation: OperationRow, most: int | None, pause: timedelta) -> Query:
        return self._query("put_off", id=operation.id, most=most, pause=pause)

    def _do(self, operation: OperationRow, items: Sequence[Row]) -> Op[_Done]:
        """Do what the operation is for to these items, as a part of the chunk's transaction that
        can be undone alone; answer what became of each, and the job that it made."""
        if operation.kind is OperationKind.BACKFILL:
            ticks = [item["fire_at"] for item in items]
            return (yield from atomically(self._filled(operation.filter.schedule or "", ticks)))
        ids = [JobId(item["job_id"]) for item in items]
        outcomes = yield from self._filed(lambda day: atomically(self._done(operation, ids, day)))
        return outcomes, [None] * len(ids)

    def _filled(self, schedule: str, ticks: Sequence[datetime]) -> Op[_Done]:
        made = yield from self._backfill(schedule, ticks)
        if made is None:
            return [ItemOutcome.NOT_FOUND] * len(ticks), [None] * len(ticks)
        jobs = [made.get(tick) for tick in ticks]
        had, fired = ItemOutcome.HAD_JOB, ItemOutcome.FIRED
        return [had if job is None else fired for job in jobs], jobs

    def _done(
        self, operation: OperationRow, ids: Sequence[JobId], day: date | None
    ) -> Op[list[ItemOutcome]]:
        match operation.kind:
            case OperationKind.RETRY:
                retried = yield from self._retried(ids)
                return [ItemOutcome(one.answer) for one in retried]
            case OperationKind.CANCEL:
                cancelled = yield from self._cancelled(ids, day)
                return [ItemOutcome(answer) for answer in cancelled]
            case OperationKind.DELETE:
                deleted = yield from self._deleted(ids)
                return [ItemOutcome(answer) for answer in deleted]
            case OperationKind.DISCARD:
                rows = yield self._query("discard", ids=list(ids))
                gone = {row["id"] for row in rows}
                no = ItemOutcome.NOT_FAILED
                return [ItemOutcome.DISCARDED if i in gone else no for i in ids]
            case OperationKind.MOVE:
                moved = yield from self._moved(ids, operation.changes or Changes())
                no = ItemOutcome.NOT_QUEUED
                return [ItemOutcome.MOVED if i in moved else no for i in ids]
            case OperationKind.BACKFILL:
                raise AssertionError("a backfill is of ticks")


def operation_row(row: Row) -> OperationRow:
    """An operation from its row."""
    return OperationRow(
        id=row["id"],
        kind=OperationKind(row["kind"]),
        state=OperationState(row["state"]),
        filter=rules.filter_of(row["filter"]),
        changes=rules.changes_of(row["changes"]),
        rate=row["rate"],
        total=row["total"],
        done=row["done"],
        outcomes={ItemOutcome(name): number for name, number in row["outcomes"].items()},
        actor=row["actor"],
        source=row["source"],
        reason=row["reason"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        next_at=row["next_at"],
    )
