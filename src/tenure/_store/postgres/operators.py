"""What operators do to jobs. Each verb and its audit row are one transaction."""

from collections.abc import Sequence
from datetime import date

from tenure._model.answers import Cancelling, Retried, Retrying
from tenure._model.audit import AuditRow, By
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._store.port import Op, Query, atomically
from tenure._store.postgres.base import LAST_ID, Base, job_targets


class Operators(Base):
    """The part of the store that operators call upon for jobs."""

    def cancel(self, ids: Sequence[JobId], by: By) -> Op[Sequence[Cancelling]]:
        """Queued: ended at once. Running: asked to, and the next renewal's answer says so."""
        return (yield from self._filed(lambda day: atomically(self._cancel(ids, by, day))))

    def _cancel(self, ids: Sequence[JobId], by: By, day: date | None) -> Op[Sequence[Cancelling]]:
        rows = yield self._query("cancel", ids=list(ids), filed_on=day)
        was = {row["id"]: State(row["was"]) for row in rows}
        yield from self._audit(by, "cancel", job_targets([i for i in ids if i in was]))
        answers = {State.QUEUED: Cancelling.CANCELLED, State.RUNNING: Cancelling.REQUESTED}
        return [answers[was[i]] if i in was else Cancelling.NOT_LIVE for i in ids]

    def revoke(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Take running jobs from their holders and end them as cancelled."""
        return (yield from self._filed(lambda day: atomically(self._revoke(ids, by, day))))

    def _revoke(self, ids: Sequence[JobId], by: By, day: date | None) -> Op[Sequence[bool]]:
        rows = yield self._query("revoke", ids=list(ids), filed_on=day)
        return (yield from self._noted(by, "revoke", ids, {row["id"] for row in rows}))

    def hold(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Keep queued jobs from being claimed."""
        return (yield from atomically(self._simple("hold", ids, by)))

    def resume(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Let held jobs go on, in their old place."""
        return (yield from atomically(self._simple("resume", ids, by)))

    def discard(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Delete dead letters for good."""
        return (yield from atomically(self._simple("discard", ids, by)))

    def _simple(self, verb: str, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        rows = yield Query(verb, {"ids": list(ids)})
        return (yield from self._noted(by, verb, ids, {row["id"] for row in rows}))

    def _noted(
        self, by: By, action: str, ids: Sequence[JobId], done: set[int]
    ) -> Op[Sequence[bool]]:
        yield from self._audit(by, action, job_targets([i for i in ids if i in done]))
        return [i in done for i in ids]

    def retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[Retried]]:
        """Bring dead letters back for a new life, unless a younger job holds the key."""
        return (yield from atomically(self._retry(ids, by)))

    def _retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[Retried]]:
        rows = yield self._query("retry", ids=list(ids))
        holders = {row["id"]: JobId(row["holder"]) for row in rows}
        answers = []
        for job_id in ids:
            holder = holders.get(job_id)
            if holder is None:
                answers.append(Retried(Retrying.NOT_FAILED))
            elif holder != job_id:
                answers.append(Retried(Retrying.KEY_HELD, holder))
            else:
                answers.append(Retried(Retrying.RETRIED))
        back = [i for i, a in zip(ids, answers, strict=True) if a.answer is Retrying.RETRIED]
        yield from self._audit(by, "retry", job_targets(back))
        return answers

    def note(self, by: By, action: str, targets: Sequence[str]) -> Op[None]:
        """Record what an operator did by a verb that takes no `By`, in its transaction."""
        return self._audit(by, action, targets)

    def audit(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """What was done to a target, newest first, below an id."""
        last = LAST_ID if before is None else before
        rows = yield self._query("list_audit", target=target, before=last, count=count)
        return [AuditRow(**row) for row in rows]
