"""Start an erasure, and run its chunks.

Starting an erasure deletes the matching schedules and records which jobs match. It also
clears data outside the jobs: audit rows, stored responses and older operations. The chunks erase
the jobs. A running job is asked to stop, and is erased once it has ended.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.operation import Erasure, ItemOutcome, NewErasure, OperationKind, OperationRow
from tenure._model.selector import Selector
from tenure._rules import erasure as rules
from tenure._rules import operations as limits
from tenure._rules.selector_syntax import quoted
from tenure._store.postgres.job_queries import JobSearchQueries
from tenure._store.postgres.rows import operation_row
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Query, RawSql, Row, Rows, atomically
from tenure.errors import InvalidValue, QueryFailed

_START_WITHIN = "SET LOCAL statement_timeout = '60s'"
_TOO_SLOW = "57014"
_AGAIN_SOON = timedelta(milliseconds=100)
_AGAIN_LATER = timedelta(seconds=5)
# How often to look whether the jobs that ran have ended.
_POLL = timedelta(seconds=1)


@dataclass(eq=False)
class ErasureQueries(QueryBase):
    search: JobSearchQueries

    def start(self, new: NewErasure, by: By) -> Op[Erasure]:
        """Freeze an erasure's jobs and erase data outside the jobs, in one transaction."""
        limits.check_rate(new.rate)
        rules.check(new.selector, by)
        return (yield from atomically(self._start(new, by)))

    def _start(self, new: NewErasure, by: By) -> Op[Erasure]:
        stored = limits.as_json(rules.stored_filter(new.selector))
        [row] = yield self._query(
            "start_operation",
            kind=OperationKind.ERASE,
            filter=Jsonb(stored),
            changes=None,
            rate=new.rate,
            actor=by.actor,
            source=by.source,
            reason=by.reason,
        )
        operation_id: int = row["id"]
        yield RawSql(_START_WITHIN)
        # Do this before the freeze, which then sees the last jobs that these schedules created.
        schedules, rows = yield from self._schedules(new.selector)
        frozen = yield from self._freeze(new.selector, operation_id)
        total = frozen.pop("total")
        if total > limits.MOST_ITEMS:
            raise InvalidValue(
                f"more than {limits.MOST_ITEMS:,} jobs match; narrow the selector by queue: or "
                "task:, and start one erasure after the other"
            )
        [owned] = yield self._slow(self._query("erasure_rows", id=operation_id))
        rows = {**frozen, **owned, **rows}
        rows["job_key"] += yield from self._orphaned_keys(new.selector)
        answers = yield self._slow(self._query("erase_answers", id=operation_id))
        audited = yield self._slow(self._query("erase_audit", id=operation_id, schedules=schedules))
        masked, audited_too = yield from self._masked(new.selector.tag, schedules)
        rows |= {
            "idempotency": len(answers),
            "operation": masked,
            "audit": len(audited) + audited_too,
        }
        [begun] = yield self._query("begin_operation", id=operation_id, total=total)
        details = {
            "kind": OperationKind.ERASE,
            "filter": stored,
            "digest": rules.digest(new.selector, new.salt),
            "rate": new.rate,
            "total": total,
            "rows": rows,
        }
        yield from self._audit(by, "operation.start", [f"operation:{operation_id}"], after=details)
        return Erasure(operation_row(begun), rows)

    def _slow(self, query: Query) -> Query:
        """Return the query without its own deadline, because it may have to read a whole table."""
        return replace(query, no_timeout=True)

    def _schedules(self, selector: Selector) -> Op[tuple[list[str], dict[str, int]]]:
        """Delete matching schedules. Return their names and how many rows were deleted."""
        if not rules.names_schedules(selector):
            return [], {"schedule": 0, "schedule_tick": 0}
        [clock] = yield self._query("clock")
        params = yield from self.search.selector_params(selector, clock["now"])
        wanted = {name: params[name] for name in ("queues", "tasks", "tags", "args")}
        [gone] = yield self._slow(self._query("erase_schedules", **wanted))
        names = list(gone["names"])
        return names, {"schedule": len(names), "schedule_tick": gone["ticks"]}

    def _freeze(self, selector: Selector, operation_id: int) -> Op[dict[str, int]]:
        [clock] = yield self._query("clock")
        params = yield from self.search.selector_params(selector, clock["now"])
        own = {
            "ids": list(selector.id) or None,
            "id": operation_id,
            "limit": limits.MOST_ITEMS + 1,
        }
        query = self.search.trimmed(self._query("freeze_erasure", **params, **own))
        [frozen] = yield self._slow(query)
        return dict(frozen)

    def _orphaned_keys(self, selector: Selector) -> Op[int]:
        """Delete the keys of jobs that no longer exist and therefore have no queue."""
        if not selector.key or selector.queue:
            return 0
        tasks = selector.task or None
        keys = yield self._slow(self._query("erase_keys", keys=selector.key, tasks=tasks))
        return len(keys)

    def _masked(self, tags: Sequence[str], schedules: Sequence[str]) -> Op[tuple[int, int]]:
        """Mask these tags and schedules in older operations. Count those and their audit rows."""
        operations = audited = 0
        rows = yield self._slow(
            self._query(
                "naming_operations", texts=[quoted(tag) for tag in tags], schedules=schedules
            )
        )
        for row in rows:
            masked = rules.masked_filter(row["filter"], tags, schedules)
            if masked is not None:
                [changed] = yield self._query(
                    "mask_operation", id=row["id"], filter=Jsonb(dict(masked))
                )
                operations, audited = operations + 1, audited + changed["audited"]
        return operations, audited

    def run_chunk(self, row: Row) -> Op[int | QueryFailed]:
        """Process one chunk of a locked operation. Return the number of items, or the error.

        First, every item gets a turn. Items whose jobs were running or locked are then checked once
        a second until the last job has ended.
        """
        operation, waiting = operation_row(row), list(row["waiting"] or ())
        limit: int | None = row["chunk_limit"]
        count = limit or limits.chunk(operation.rate)
        is_first_turn = operation.done < operation.total
        if is_first_turn:
            found = yield self._query(
                "operation_items",
                id=operation.id,
                after=operation.done,
                until=operation.total,
                outcome=None,
                count=count,
            )
            ids = [item["job_id"] for item in found]
        else:
            found = yield self._query("erase_ready", ids=waiting, count=count)
            ids = [one["id"] for one in found]
        outcome = ItemOutcome.ERASED
        try:
            left = yield from atomically(self._erase(ids))
        except QueryFailed as error:
            is_locked = error.is_conflict or error.sqlstate == _TOO_SLOW
            if not is_locked and not error.is_data_error:
                yield self._put_off(operation, limit, _AGAIN_LATER)
                return error
            if len(ids) > 1:
                yield self._put_off(operation, len(ids) // 2, _AGAIN_SOON)
                return 0
            left = set(ids) if is_locked else set()
            outcome = ItemOutcome.ERASED if is_locked else ItemOutcome.REFUSED
        yield self._record(operation, limit, ids, left, waiting, outcome)
        return len(ids) - len(left)

    def _record(
        self,
        operation: OperationRow,
        limit: int | None,
        ids: Sequence[int],
        left: set[int],
        waiting: Sequence[int],
        outcome: ItemOutcome,
    ) -> Query:
        is_first_turn = operation.done < operation.total
        outcomes = [ItemOutcome.WAITING if one in left else outcome for one in ids]
        counts = Counter(operation.outcomes) + Counter(outcomes)
        if not is_first_turn:
            counts -= Counter({ItemOutcome.WAITING: len(ids)})
        # Jobs that still exist go to the end, so that each one gets its turn.
        kept = [*(one for one in waiting if one not in set(ids)), *(i for i in ids if i in left)]
        done = operation.done + len(ids) * is_first_turn
        only_waits = done >= operation.total and len(left) == len(ids)
        return self._query(
            "record_erasure",
            id=operation.id,
            job_ids=ids,
            outcomes=outcomes,
            done=done,
            counts=Jsonb(counts),
            chunk_limit=limits.grown(limit, operation.rate),
            waiting=kept,
            pause=_POLL if only_waits else None,
        )

    def _put_off(self, operation: OperationRow, limit: int | None, pause: timedelta) -> Query:
        return self._query("postpone_operation", id=operation.id, chunk_limit=limit, pause=pause)

    def _erase(self, ids: Sequence[int]) -> Op[set[int]]:
        """Erase these jobs; return those that run or have moved meanwhile."""
        running = _ids((yield self._query("erase_live", ids=ids)))
        ended = [one for one in ids if one not in running]
        yield self._query("erase_ended", ids=ended)
        return running | _ids((yield self._query("erase_left", ids=ended)))


def _ids(rows: Rows) -> set[int]:
    return {JobId(row["id"]) for row in rows}
