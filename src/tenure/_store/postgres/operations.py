"""Batch operations: start, run chunks, pause and abort, list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.operation import (
    Changes,
    Filter,
    ItemOutcome,
    Membership,
    NewBackfill,
    NewOperation,
    OperationItem,
    OperationKind,
    OperationRow,
    OperationState,
)
from tenure._rules import operations as rules
from tenure._rules import selector_query
from tenure._store.postgres.erasures import ErasureQueries
from tenure._store.postgres.job_commands import JobCommandQueries
from tenure._store.postgres.job_queries import JobSearchQueries
from tenure._store.postgres.rows import LAST_ID, operation_row
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.postgres.ticks import TickQueries
from tenure._store.steps import Op, Query, RawSql, Row, atomic, atomically
from tenure.errors import InvalidValue, QueryFailed

# An abort waits for the current chunk.
_WITHIN = "SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '1s'"
_TOO_SLOW = "57014"
_AGAIN_SOON = timedelta(milliseconds=100)
_AGAIN_LATER = timedelta(seconds=5)
_SEARCHED = 100_000
# How many of a backfill's ticks one statement freezes.
_TICKS = 10_000
# A filter may have to read a whole table.
_FREEZE_WITHIN = "SET LOCAL statement_timeout = '60s'"
_ACTIONS = {
    OperationState.PAUSED: "operation.pause",
    OperationState.RUNNING: "operation.resume",
    OperationState.ABORTED: "operation.abort",
}
_Done = tuple[list[ItemOutcome], list[JobId | None]]


@dataclass(eq=False)
class OperationQueries(QueryBase):
    commands: JobCommandQueries
    search: JobSearchQueries
    ticks: TickQueries
    erasures: ErasureQueries

    def next_due(self) -> Op[tuple[datetime | None, datetime]]:
        """Return when the next chunk is due, if any, and the current time."""
        [row] = yield self._query("next_operation")
        return row["next_at"], row["now"]

    def run_chunk(self) -> Op[int]:
        """Process one chunk of the most overdue operation, in one transaction.

        If an item is locked or rejected, the chunk is halved until that item is alone. Any other
        error postpones only this operation.
        """
        done = yield from atomically(self._run_chunk())
        if isinstance(done, QueryFailed):
            raise done
        return done

    def _run_chunk(self) -> Op[int | QueryFailed]:
        yield RawSql(_WITHIN)
        rows = yield self._query("due_operation")
        if not rows:
            return 0
        operation, limit = operation_row(rows[0]), rows[0]["chunk_limit"]
        if operation.kind is OperationKind.ERASE:
            return (yield from self.erasures.run_chunk(rows[0]))
        items = yield self._query(
            "operation_items",
            id=operation.id,
            after=operation.done,
            until=operation.total,
            outcome=None,
            count=limit or rules.chunk(operation.rate),
        )
        try:
            outcomes, made = yield from self._do(operation, items)
        except QueryFailed as error:
            locked = error.is_conflict or error.sqlstate == _TOO_SLOW
            if not locked and not error.is_data_error:
                yield self._put_off(operation, limit, _AGAIN_LATER)
                return error
            if len(items) > 1:
                yield self._put_off(operation, len(items) // 2, _AGAIN_SOON)
                return 0
            outcomes, made = [ItemOutcome.BUSY if locked else ItemOutcome.REFUSED], [None]
        yield self._query(
            "record_chunk",
            id=operation.id,
            places=[item["place"] for item in items],
            outcomes=outcomes,
            counts=Jsonb(Counter(operation.outcomes) + Counter(outcomes)),
            chunk_limit=rules.grown(limit, operation.rate),
            job_ids=made,
        )
        return len(items)

    def _put_off(self, operation: OperationRow, limit: int | None, pause: timedelta) -> Query:
        return self._query("postpone_operation", id=operation.id, chunk_limit=limit, pause=pause)

    def _do(self, operation: OperationRow, items: Sequence[Row]) -> Op[_Done]:
        """Process these items in a savepoint. Return each item's outcome and any job it created."""
        if operation.kind is OperationKind.BACKFILL:
            ticks = [item["fire_at"] for item in items]
            return (yield from atomically(self._filled(operation.filter.schedule or "", ticks)))
        ids = [JobId(item["job_id"]) for item in items]
        outcomes = yield from self._with_partition_fallback(
            lambda day: atomically(self._done(operation, ids, day))
        )
        return outcomes, [None] * len(ids)

    def _filled(self, schedule: str, ticks: Sequence[datetime]) -> Op[_Done]:
        made = yield from self.ticks.backfill(schedule, ticks)
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
                retried = yield from self.commands.retry_unaudited(ids)
                return [ItemOutcome(one.answer) for one in retried]
            case OperationKind.CANCEL:
                cancelled = yield from self.commands.cancel_unaudited(ids, day)
                return [ItemOutcome(answer) for answer in cancelled]
            case OperationKind.DELETE:
                deleted = yield from self.commands.delete_unaudited(ids)
                return [ItemOutcome(answer) for answer in deleted]
            case OperationKind.DISCARD:
                rows = yield self._query("discard", ids=list(ids))
                gone = {row["id"] for row in rows}
                no = ItemOutcome.NOT_FAILED
                return [ItemOutcome.DISCARDED if i in gone else no for i in ids]
            case OperationKind.MOVE:
                moved = yield from self.commands.move_unaudited(ids, operation.changes or Changes())
                no = ItemOutcome.NOT_QUEUED
                return [ItemOutcome.MOVED if i in moved else no for i in ids]
            case OperationKind.BACKFILL | OperationKind.ERASE:
                raise AssertionError(f"the chunks of a {operation.kind} are done elsewhere")

    def start(self, new: NewOperation, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Start an operation by storing its members. Without `keep`, only count them (dry run)."""
        rules.check(new)
        return (yield from atomically(self._start(new, by, keep=keep)))

    def _start(self, new: NewOperation, by: By, *, keep: bool) -> Op[OperationRow]:
        operation_id = yield from self._begun(new, by)
        [frozen] = yield (yield from self._freeze(new, operation_id, keep=keep))
        if frozen["total"] > rules.MOST_ITEMS:
            raise InvalidValue(
                f"more than {rules.MOST_ITEMS:,} jobs match; narrow the filter, and start one "
                "operation after the other"
            )
        return (yield from self._admitted(new, operation_id, frozen["total"], by))

    def start_backfill(self, new: NewBackfill, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Store the ticks that have no job, in the transaction that creates the operation."""
        rules.check_rate(new.rate)
        return (yield from atomically(self._start_backfill(new, by, keep=keep)))

    def _start_backfill(self, new: NewBackfill, by: By, *, keep: bool) -> Op[OperationRow]:
        chosen = Filter(schedule=new.schedule, queue=new.queue, since=new.since, until=new.until)
        operation = NewOperation(kind=OperationKind.BACKFILL, filter=chosen, rate=new.rate)
        operation_id = yield from self._begun(operation, by)
        total = 0
        for start in range(0, len(new.fire_ats), _TICKS):
            [frozen] = yield Query(
                "freeze_ticks",
                {
                    "id": operation_id,
                    "schedule": new.schedule,
                    "fire_ats": list(new.fire_ats[start : start + _TICKS]),
                    "after": total,
                    "keep": keep,
                },
                no_timeout=True,
            )
            total += frozen["total"]
        row = yield from self._admitted(operation, operation_id, total, by)
        details = {"operation": operation_id, "total": total}
        yield from self._audit(by, "schedule.backfill", [f"schedule:{new.schedule}"], after=details)
        return row

    def _begun(self, new: NewOperation, by: By) -> Op[int]:
        """Insert an operation without members and return its id."""
        changes = rules.as_json(new.changes)
        [row] = yield self._query(
            "start_operation",
            kind=new.kind,
            filter=Jsonb(rules.as_json(new.filter)),
            changes=None if changes is None else Jsonb(changes),
            rate=new.rate,
            actor=by.actor,
            source=by.source,
            reason=by.reason,
        )
        yield RawSql(_FREEZE_WITHIN)
        operation_id: int = row["id"]
        return operation_id

    def _admitted(
        self, new: NewOperation, operation_id: int, total: int, by: By
    ) -> Op[OperationRow]:
        """Let an operation start once it has all of its members."""
        [row] = yield self._query("begin_operation", id=operation_id, total=total)
        details = {
            "kind": new.kind,
            "filter": rules.as_json(new.filter),
            "changes": rules.as_json(new.changes),
            "rate": new.rate,
            "total": total,
        }
        yield from self._audit(by, "operation.start", [f"operation:{operation_id}"], after=details)
        return operation_row(row)

    def _freeze(self, new: NewOperation, operation_id: int, *, keep: bool) -> Op[Query]:
        """Return the statement that stores the members. It depends on which table they're in."""
        own = {"id": operation_id, "keep": keep}
        if new.filter.ids is not None:
            return Query("freeze_ids", {**own, "ids": list(new.filter.ids)}, no_timeout=True)
        [clock] = yield self._query("clock")
        selector = rules.selector_of(new.filter)
        params = yield from self.search.selector_params(selector, clock["now"])
        params |= {**own, "limit": rules.MOST_ITEMS + 1, "signature": new.filter.signature}
        states = rules.states_of(new)
        if states[0].is_live:
            views = selector_query.views(selector, State.QUEUED)
            expired = selector_query.views(selector, State.RUNNING) is not None
            parts = {"states": states, "views": views, "expired": expired}
            query = self._query("freeze_live", **params, **parts)
        elif states == [State.FAILED]:
            query = self._query("freeze_failed", **params)
        else:
            query = self._query("freeze_archive", **params, state=states[0])
        return replace(self.search.trimmed(query), no_timeout=True)

    @atomic
    def steer(self, operation_id: int, wanted: OperationState, by: By) -> Op[OperationRow]:
        """Pause, resume (`running`) or abort an operation, waiting only for the current chunk."""
        rows = yield self._query("lock_operation", id=operation_id)
        if not rows:
            raise rules.unknown(operation_id)
        before = operation_row(rows[0])
        state = rules.steered(before, wanted)
        if state is before.state:
            return before
        [row] = yield self._query("set_operation_state", id=operation_id, state=state)
        yield from self._audit(
            by,
            _ACTIONS[wanted],
            [f"operation:{operation_id}"],
            before={"state": before.state, "done": before.done},
            after={"state": state},
        )
        return operation_row(row)

    def get(self, operation_id: int) -> Op[OperationRow | None]:
        if not 0 < operation_id < LAST_ID:
            return None
        rows = yield self._query(
            "operations", before=operation_id + 1, lowest=operation_id, count=1, granted=None
        )
        return operation_row(rows[0]) if rows else None

    def list(
        self,
        *,
        before: int | None = None,
        count: int = 50,
        granted: Sequence[str] | None = None,
    ) -> Op[Sequence[OperationRow]]:
        last = LAST_ID if before is None else before
        rows = yield self._query("operations", before=last, lowest=0, count=count, granted=granted)
        return [operation_row(row) for row in rows]

    def items(
        self,
        operation_id: int,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[tuple[Sequence[OperationItem], int | None]]:
        """Return the items after a position, and where the next page begins (None at the end)."""
        operation = yield from self.get(operation_id)
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
        items = [
            OperationItem(r["place"], r["job_id"], _outcome(r["outcome"]), r["fire_at"])
            for r in rows
        ]
        last = items[-1].place if len(items) == count else until
        return items, last if last < operation.total else None

    def of_job(self, job_id: JobId, *, count: int = 100) -> Op[Sequence[Membership]]:
        """Return the operations that include or included this job, newest first."""
        rows = yield self._query("operations_of", job_id=job_id, count=count)
        return [Membership(operation_row(row), _outcome(row["outcome"])) for row in rows]


def _outcome(stored: str | None) -> ItemOutcome | None:
    return None if stored is None else ItemOutcome(stored)
