"""What an operator can see of jobs, and do to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

from tenure._model.answers import Cancelling, Deleting, Retried
from tenure._model.attempt import AttemptRow
from tenure._model.audit import AuditRow, By
from tenure._model.ids import Json
from tenure._model.job import JobRow, State
from tenure._model.operation import Changes
from tenure._rules import ids as rules
from tenure._rules import paging
from tenure._store.port import Op
from tenure.admin.enqueuing import Enqueuing
from tenure.admin.faces import Twin, Verb, rehearsed
from tenure.errors import InvalidValue

T = TypeVar("T")
# As numbers, or as the texts that HTTP has for them.
Ids: TypeAlias = Sequence[int | str]
_LONGEST_PAGE = 1000


@dataclass(frozen=True, slots=True)
class JobList:
    """A page of jobs, newest first; it may come short. `next` is None at the end alone."""

    jobs: Sequence[JobRow]
    next: str | None


class Jobs(Enqueuing):
    """The verbs over jobs. Those that change take many, and answer in the order asked."""

    @Verb
    def job(self, job_id: int | str) -> Op[JobRow | None]:
        """The job wherever it is now, or None."""
        return self._store.get(rules.job_id(job_id))

    ajob: Final = Twin(job)

    @Verb
    def jobs(
        self,
        state: State,
        *,
        queue: str | None = None,
        task: str | None = None,
        signature: str | None = None,
        count: int = 50,
        after: str | None = None,
    ) -> Op[JobList]:
        """Jobs in one state, newest first; `after` is the last page's `next`. What is searched
        per page is bounded, so that a page may come short. Only dead letters have the `signature`
        of an error."""
        if not 1 <= count <= _LONGEST_PAGE:
            raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
        place = None if after is None else paging.place(after)
        page = yield from self._store.list(
            State(state), queue=queue, task=task, signature=signature, count=count, place=place
        )
        return JobList(page.jobs, None if page.next is None else paging.token(page.next))

    ajobs: Final = Twin(jobs)

    @Verb
    def attempts(self, job_id: int | str) -> Op[Sequence[AttemptRow]]:
        """The job's ended running periods, oldest first."""
        return self._store.attempts(rules.job_id(job_id))

    aattempts: Final = Twin(attempts)

    @Verb
    def last_attempts(self, ids: Ids) -> Op[Sequence[AttemptRow]]:
        """The last ended running period of each of up to 1,000 jobs that has one, without trace and
        log: what a list of jobs says of their errors."""
        said = rules.job_ids(ids)
        if len(said) > _LONGEST_PAGE:
            raise InvalidValue(f"{len(said):,} jobs at once; {_LONGEST_PAGE:,} is the most")
        return self._store.last_attempts(said)

    alast_attempts: Final = Twin(last_attempts)

    @Verb
    def items(
        self, job_id: int | str, *, after: str = "", count: int = 1000
    ) -> Op[Mapping[str, Json]]:
        """The job's result items by key, above a key."""
        return self._store.items(rules.job_id(job_id), after=after, count=count)

    aitems: Final = Twin(items)

    @Verb
    def audit(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """What was done to a target (`job:5`, `queue:mail`), newest first, below an id."""
        return self._store.audit(target, count=count, before=before)

    aaudit: Final = Twin(audit)

    @Verb
    def retry(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[Retried]]:
        """Bring dead letters back for a new life."""
        return _meant(self._store.retry(rules.job_ids(ids), by), dry_run=dry_run)

    aretry: Final = Twin(retry)

    @Verb
    def cancel(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[Cancelling]]:
        """End queued jobs at once; ask the holders of running ones to end them."""
        return _meant(self._store.cancel(rules.job_ids(ids), by), dry_run=dry_run)

    acancel: Final = Twin(cancel)

    @Verb
    def revoke(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Take running jobs from their holders and end them; False for one that does not run."""
        return _meant(self._store.revoke(rules.job_ids(ids), by), dry_run=dry_run)

    arevoke: Final = Twin(revoke)

    @Verb
    def hold(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Keep queued jobs from being claimed; False for one that is not queued."""
        return _meant(self._store.hold(rules.job_ids(ids), by), dry_run=dry_run)

    ahold: Final = Twin(hold)

    @Verb
    def resume(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Let held jobs go on, in their old place; False for one that is not held."""
        return _meant(self._store.resume(rules.job_ids(ids), by), dry_run=dry_run)

    aresume: Final = Twin(resume)

    @Verb
    def discard(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Delete dead letters for good; False for one that is none."""
        return _meant(self._store.discard(rules.job_ids(ids), by), dry_run=dry_run)

    adiscard: Final = Twin(discard)

    @Verb
    def move(
        self,
        ids: Ids,
        by: By,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        dry_run: bool = False,
    ) -> Op[Sequence[bool]]:
        """Give queued jobs another queue, priority or time, at the earliest now; one that keeps
        its time keeps its age. False for one that is not queued."""
        changes = Changes(queue=queue, priority=priority, run_at=run_at)
        return _meant(self._store.move(rules.job_ids(ids), changes, by), dry_run=dry_run)

    amove: Final = Twin(move)

    @Verb
    def delete(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[Deleting]]:
        """Delete ended jobs for good, with their items and the keys that they still have. One
        that is queued or running is left: cancel it first. Attempts stay as long as others."""
        return _meant(self._store.delete(rules.job_ids(ids), by), dry_run=dry_run)

    adelete: Final = Twin(delete)


def _meant(op: Op[T], *, dry_run: bool) -> Op[T]:
    return rehearsed(op) if dry_run else op
