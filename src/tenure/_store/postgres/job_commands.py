"""Operators' job commands. Each command and its audit row share one transaction."""

from collections.abc import Sequence
from datetime import date

from tenure._model.audit import By
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.operation import Changes
from tenure._model.results import (
    CancelStatus,
    DeleteStatus,
    FreeResult,
    FreeStatus,
    RetryResult,
    RetryStatus,
)
from tenure._rules import operations as rules
from tenure._store.postgres.rows import job_targets
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Query, atomic, atomically


class JobCommandQueries(QueryBase):
    """Operators' job commands.

    Operations use the `…_unaudited` forms and write their own audit row.
    """

    def cancel(self, ids: Sequence[JobId], by: By) -> Op[Sequence[CancelStatus]]:
        """End queued jobs, and ask running ones to end at their next renewal."""
        return self._with_partition_fallback(lambda day: atomically(self._cancel(ids, by, day)))

    def _cancel(self, ids: Sequence[JobId], by: By, day: date | None) -> Op[Sequence[CancelStatus]]:
        answers = yield from self.cancel_unaudited(ids, day)
        live = {i for i, a in zip(ids, answers, strict=True) if a is not CancelStatus.NOT_LIVE}
        yield from self._audited(by, "cancel", ids, live)
        return answers

    def cancel_unaudited(
        self, ids: Sequence[JobId], day: date | None
    ) -> Op[Sequence[CancelStatus]]:
        rows = yield self._query("cancel", ids=list(ids), filed_on=day)
        was = {row["id"]: State(row["was"]) for row in rows}
        answers = {State.QUEUED: CancelStatus.CANCELLED, State.RUNNING: CancelStatus.REQUESTED}
        return [answers[was[i]] if i in was else CancelStatus.NOT_LIVE for i in ids]

    def revoke(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Take running jobs away from their holders and end them as cancelled."""
        return self._with_partition_fallback(lambda day: atomically(self._revoke(ids, by, day)))

    def _revoke(self, ids: Sequence[JobId], by: By, day: date | None) -> Op[Sequence[bool]]:
        rows = yield self._query("revoke", ids=list(ids), filed_on=day)
        return (yield from self._audited(by, "revoke", ids, {row["id"] for row in rows}))

    def hold(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Keep queued jobs from being claimed."""
        return atomically(self._simple("hold", ids, by))

    def resume(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Release held jobs, which keep their place in the queue."""
        return atomically(self._simple("resume", ids, by))

    def discard(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        return atomically(self._simple("discard", ids, by))

    def _simple(self, verb: str, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        rows = yield Query(verb, {"ids": list(ids)})
        return (yield from self._audited(by, verb, ids, {row["id"] for row in rows}))

    def _audited(
        self, by: By, action: str, ids: Sequence[JobId], done: set[JobId]
    ) -> Op[Sequence[bool]]:
        yield from self._audit(by, action, job_targets([i for i in ids if i in done]))
        return [i in done for i in ids]

    @atomic
    def retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[RetryResult]]:
        """Requeue dead letters with fresh counters, unless a newer job holds the key."""
        answers = yield from self.retry_unaudited(ids)
        back = {i for i, a in zip(ids, answers, strict=True) if a.answer is RetryStatus.RETRIED}
        yield from self._audited(by, "retry", ids, back)
        return answers

    def retry_unaudited(self, ids: Sequence[JobId]) -> Op[Sequence[RetryResult]]:
        rows = yield self._query("retry", ids=list(ids))
        holders = {row["id"]: JobId(row["holder"]) for row in rows}
        answers = []
        for job_id in ids:
            holder = holders.get(job_id)
            if holder is None:
                answers.append(RetryResult(RetryStatus.NOT_FAILED))
            elif holder != job_id:
                answers.append(RetryResult(RetryStatus.KEY_HELD, holder))
            else:
                answers.append(RetryResult(RetryStatus.RETRIED))
        return answers

    def move(self, ids: Sequence[JobId], changes: Changes, by: By) -> Op[Sequence[bool]]:
        """Change queued jobs' queue, priority or time.

        Without a new time, their due time stays the same.
        """
        rules.check_changes(changes)
        return (yield from atomically(self._move(ids, changes, by)))

    def _move(self, ids: Sequence[JobId], changes: Changes, by: By) -> Op[Sequence[bool]]:
        moved = yield from self.move_unaudited(ids, changes)
        targets = job_targets([i for i in ids if i in moved])
        yield from self._audit(by, "move", targets, after=rules.as_json(changes))
        return [i in moved for i in ids]

    def move_unaudited(self, ids: Sequence[JobId], changes: Changes) -> Op[set[JobId]]:
        rows = yield self._query(
            "move",
            ids=list(ids),
            queue=changes.queue,
            priority=changes.priority,
            run_at=changes.run_at,
        )
        return {JobId(row["id"]) for row in rows}

    @atomic
    def delete(self, ids: Sequence[JobId], by: By) -> Op[Sequence[DeleteStatus]]:
        """Delete ended jobs with their items and keys. Refuse to delete live ones."""
        answers = yield from self.delete_unaudited(ids)
        gone = {i for i, a in zip(ids, answers, strict=True) if a is DeleteStatus.DELETED}
        yield from self._audited(by, "delete", ids, gone)
        return answers

    @atomic
    def free_key(self, task: str, key: str, by: By) -> Op[FreeResult]:
        """Free a deduplication key whose job has ended or never existed.

        A live job keeps its key.
        """
        rows = yield self._query("free_key", task=task, key=key)
        if not rows:
            return FreeResult(FreeStatus.NOT_FOUND)
        holder = JobId(rows[0]["job_id"])
        if not rows[0]["freed"]:
            orphan = yield self._query("free_orphaned_key", task=task, key=key, job_id=holder)
            if not orphan:
                return FreeResult(FreeStatus.LIVE, holder)
        before = {"key": key, "job": holder}
        yield from self._audit(by, "key.free", [f"task:{task}"], before=before)
        return FreeResult(FreeStatus.FREED, holder)

    def delete_unaudited(self, ids: Sequence[JobId]) -> Op[Sequence[DeleteStatus]]:
        rows = yield self._query("delete", ids=list(ids))
        statuses = {
            row["id"]: DeleteStatus.LIVE if row["live"] else DeleteStatus.DELETED for row in rows
        }
        return [statuses.get(i, DeleteStatus.NOT_FOUND) for i in ids]
