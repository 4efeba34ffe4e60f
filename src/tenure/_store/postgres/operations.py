"""Operations as operators start, steer and read them. Their chunks are in `advancing`."""

from collections.abc import Sequence

from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.operation import (
    ItemOutcome,
    Membership,
    NewOperation,
    OperationItem,
    OperationRow,
    OperationState,
)
from tenure._rules import operations as rules
from tenure._store.port import Ddl, Op, Query, atomically
from tenure._store.postgres.advancing import Advancing, operation_row
from tenure._store.postgres.base import LAST_ID
from tenure._store.postgres.literals import Jsonb
from tenure.errors import InvalidValue

_SEARCHED = 100_000
# A filter may have to read a whole table.
_FREEZE_WITHIN = "SET LOCAL statement_timeout = '60s'"
_ACTIONS = {
    OperationState.PAUSED: "operation.pause",
    OperationState.RUNNING: "operation.resume",
    OperationState.ABORTED: "operation.abort",
}


class Operations(Advancing):
    """The part of the store that does one thing to many jobs."""

    def start_operation(self, new: NewOperation, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Freeze the members of an operation, in one transaction with its row and its audit."""
        rules.check(new)
        return (yield from atomically(self._start(new, by, keep=keep)))

    def _start(self, new: NewOperation, by: By, *, keep: bool) -> Op[OperationRow]:
        changes = rules.as_json(new.changes)
        said = rules.as_json(new.filter)
        [row] = yield self._query(
            "start_operation",
            kind=new.kind,
            filter=Jsonb(said),
            changes=None if changes is None else Jsonb(changes),
            rate=new.rate,
            actor=by.actor,
            source=by.source,
            reason=by.reason,
        )
        yield Ddl(_FREEZE_WITHIN)
        [frozen] = yield self._freeze(new, row["id"], keep=keep)
        if frozen["total"] > rules.MOST_ITEMS:
            raise InvalidValue(
                f"more than {rules.MOST_ITEMS:,} jobs match; narrow the filter, and start one "
                "operation after the other"
            )
        [row] = yield self._query("admit_operation", id=row["id"], total=frozen["total"])
        told = {
            "kind": new.kind,
            "filter": said,
            "changes": changes,
            "rate": new.rate,
            "total": frozen["total"],
        }
        yield from self._audit(by, "operation.start", [f"operation:{row['id']}"], after=told)
        return operation_row(row)

    def _freeze(self, new: NewOperation, operation_id: int, *, keep: bool) -> Query:
        """The statement that makes the members, by the table that they are in."""
        said, most = new.filter, rules.MOST_ITEMS + 1
        own = {"id": operation_id, "keep": keep}
        if said.ids is not None:
            return Query("freeze_ids", {**own, "ids": list(said.ids)}, patient=True)
        common = {
            **own,
            "most": most,
            "queue": said.queue,
            "task": said.task,
            "created_after": said.created_after,
            "created_before": said.created_before,
        }
        states = rules.states_of(new)
        if states[0].is_live:
            return Query("freeze_live", {**common, "states": states}, patient=True)
        ended = {"ended_after": said.ended_after, "ended_before": said.ended_before}
        if states == [State.FAILED]:
            failed = {**common, **ended, "signature": said.signature}
            return Query("freeze_failed", failed, patient=True)
        return Query("freeze_archive", {**common, **ended, "state": states[0]}, patient=True)

    def steer_operation(
        self, operation_id: int, wanted: OperationState, by: By
    ) -> Op[OperationRow]:
        """Pause, resume or abort; waits for the chunk that is being done, and for no more."""
        return (yield from atomically(self._steer_operation(operation_id, wanted, by)))

    def _steer_operation(
        self, operation_id: int, wanted: OperationState, by: By
    ) -> Op[OperationRow]:
        rows = yield self._query("lock_operation", id=operation_id)
        if not rows:
            raise rules.unknown(operation_id)
        before = operation_row(rows[0])
        state = rules.steered(before, wanted)
        if state is before.state:
            return before
        [row] = yield self._query("steer_operation", id=operation_id, state=state)
        yield from self._audit(
            by,
            _ACTIONS[wanted],
            [f"operation:{operation_id}"],
            before={"state": before.state, "done": before.done},
            after={"state": state},
        )
        return operation_row(row)

    def operation(self, operation_id: int) -> Op[OperationRow | None]:
        """The operation of this id, or None."""
        if not 0 < operation_id < LAST_ID:
            return None
        rows = yield self._query(
            "operations", before=operation_id + 1, lowest=operation_id, count=1
        )
        return operation_row(rows[0]) if rows else None

    def operations(
        self, *, before: int | None = None, count: int = 50
    ) -> Op[Sequence[OperationRow]]:
        """Operations, newest first, below an id."""
        last = LAST_ID if before is None else before
        rows = yield self._query("operations", before=last, lowest=0, count=count)
        return [operation_row(row) for row in rows]

    def operation_items(
        self,
        operation_id: int,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[tuple[Sequence[OperationItem], int | None]]:
        """An operation's items in their order, behind a place, within a stretch of places."""
        operation = yield from self.operation(operation_id)
        if operation is None:
            raise rules.unknown(operation_id)
        until = min(after + _SEARCHED, operation.total)
        rows = yield self._query(
            "operation_items",
            id=operation_id,
            after=after,
            until=until,
            outcome=outcome,
            count=count,
        )
        items = [OperationItem(r["place"], r["job_id"], _outcome(r["outcome"])) for r in rows]
        last = items[-1].place if len(items) == count else until
        return items, last if last < operation.total else None

    def operations_of(self, job_id: JobId, *, count: int = 100) -> Op[Sequence[Membership]]:
        """The operations that a job is or was a member of, newest first."""
        rows = yield self._query("operations_of", job_id=job_id, count=count)
        return [Membership(operation_row(row), _outcome(row["outcome"])) for row in rows]


def _outcome(stored: str | None) -> ItemOutcome | None:
    return None if stored is None else ItemOutcome(stored)
