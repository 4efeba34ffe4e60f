"""Commands on jobs: enqueue, get, list, cancel, retry and more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias, TypeVar, Unpack
from uuid import UUID

from tenure._model.attempt import AttemptRow
from tenure._model.audit import By
from tenure._model.explanation import Explanation
from tenure._model.ids import JobId, Json, WorkerId
from tenure._model.job import EnqueueResult, JobRow, NewJob, State, with_fields
from tenure._model.lease import LeaseRow
from tenure._model.operation import Changes
from tenure._model.results import CancelStatus, DeleteStatus, RetryResult
from tenure._model.stats import FailedGroup
from tenure._rules import explain, idempotency, paging, payload
from tenure._rules import idempotency as rules
from tenure._store.steps import Op, atomically
from tenure.admin._commands import (
    MAX_PAGE_SIZE,
    AdminCommand,
    AsyncTwin,
    CommandGroup,
    as_dry_run,
    check_page_size,
)
from tenure.admin.search import SearchCommands
from tenure.errors import InvalidValue, PayloadError
from tenure.task import EnqueueOptions, check_names, new_job, unregistered_task

_MOST_AT_ONCE = 1000


class NamedJobOptions(EnqueueOptions, total=False):
    """Options of a job that is asked for by its task's name. One that is not given is the queue's,
    the settings', or built in: the task's own options are in the program that has it."""

    held: bool


class JobRequest:
    """A job that is asked for by its task's name."""

    def __init__(
        self, *, task: str, args: Mapping[str, Json], **options: Unpack[NamedJobOptions]
    ) -> None:
        check_names(options, NamedJobOptions.__optional_keys__)
        self.task = task
        self.args = args
        self.options = options


@dataclass(frozen=True, slots=True)
class EnqueuedMany:
    """The answers to many enqueues, in the order asked. `repeated`: they were given before, to the
    same request with the same idempotency key, and nothing was enqueued now."""

    jobs: Sequence[EnqueueResult]
    repeated: bool


class EnqueueCommands(CommandGroup):
    """The verbs that enqueue jobs by the names of their tasks."""

    @AdminCommand
    def enqueue(
        self, task: str, args: Mapping[str, Json], by: By, **options: Unpack[NamedJobOptions]
    ) -> Op[EnqueueResult]:
        """Enqueue a job of a task by its name. The task's own options are in the program that has
        it and unknown here: what is not given is the queue's, the settings', or built in."""
        request = JobRequest(task=task, args=args, **options)
        [answer] = yield from atomically(self._enqueue([_new(request)], by))
        return answer

    aenqueue: Final = AsyncTwin(enqueue)

    @AdminCommand
    def enqueue_many(
        self,
        jobs: Sequence[JobRequest],
        by: By,
        *,
        idempotency_key: str | None = None,
        notes: Mapping[str, Json] | None = None,
    ) -> Op[EnqueuedMany]:
        """Enqueue up to 1,000 jobs by the names of their tasks: all of them, or none.

        With an idempotency key, which is `by.actor`'s own, the same jobs again within a day have
        the first answer and are not enqueued twice; other jobs are an IdempotencyConflict. Two at
        once: the second waits for the first. `notes` go with each job as if middleware had noted
        them; they are no part of what is asked for.
        """
        if not 1 <= len(jobs) <= _MOST_AT_ONCE:
            raise InvalidValue(
                f"{len(jobs):,} jobs at once; 1 to {_MOST_AT_ONCE:,} is allowed, send them in parts"
            )
        new = [_new(request) for request in jobs]
        for job in new:
            # Before the digest: what is no JSON has none.
            payload.check(job)
            payload.encode(job.args)
        asked = new
        if notes:
            new = [replace(job, meta=with_fields(job.meta, notes)) for job in new]
        if idempotency_key is None:
            return EnqueuedMany((yield from atomically(self._enqueue(new, by))), repeated=False)
        told, repeated = yield from self._store.tokens.once(
            by.actor, idempotency_key, idempotency.digest(asked), self._told(new, by)
        )
        answers = [EnqueueResult(JobId(job_id), created) for job_id, created in told]
        return EnqueuedMany(answers, repeated)

    aenqueue_many: Final = AsyncTwin(enqueue_many)

    def _told(self, jobs: Sequence[NewJob], by: By) -> Op[Json]:
        """Enqueue, and answer in a form that can be kept."""
        answers = yield from self._enqueue(jobs, by)
        return [[answer.id, answer.created] for answer in answers]

    def _enqueue(self, jobs: Sequence[NewJob], by: By) -> Op[Sequence[EnqueueResult]]:
        answers = yield from self._store.jobs.enqueue(jobs)
        made = [f"job:{answer.id}" for answer in answers if answer.created]
        yield from self._store.audit.record(by, "enqueue", made)
        return answers


def _new(request: JobRequest) -> NewJob:
    if not isinstance(request.args, Mapping):
        raise PayloadError('the arguments are no object; name each one, as in {"name": "Ada"}')
    job = new_job(unregistered_task(request.task), request.options, dict(request.args))
    return replace(job, held=request.options.get("held", False))


T = TypeVar("T")
# As numbers, or as the texts that HTTP has for them.
Ids: TypeAlias = Sequence[int | str]


@dataclass(frozen=True, slots=True)
class JobList:
    """A page of jobs, newest first; it may come short. `next` is None at the end alone."""

    jobs: Sequence[JobRow]
    next: str | None


@dataclass(frozen=True, slots=True)
class FailedGroups:
    """A page of groups, by task and signature. `next` is None at the end alone."""

    groups: Sequence[FailedGroup]
    next: str | None


class Jobs(EnqueueCommands, SearchCommands):
    """The verbs over jobs. Those that change take many, and answer in the order asked."""

    @AdminCommand
    def get(self, job_id: int | str) -> Op[JobRow | None]:
        """The job wherever it is now, or None."""
        return self._store.jobs.get(rules.job_id(job_id))

    aget: Final = AsyncTwin(get)

    @AdminCommand
    def list(
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
        check_page_size(count)
        place = None if after is None else paging.place(after)
        page = yield from self._store.job_queries.list(
            State(state), queue=queue, task=task, signature=signature, count=count, place=place
        )
        return JobList(page.jobs, None if page.next is None else paging.token(page.next))

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def why(self, job_id: int | str) -> Op[Explanation]:
        """Where a job stands: why it is not running, or who runs it, or how it ended."""
        said = rules.job_id(job_id)
        facts = yield from self._store.stats.facts(said)
        return explain.nowhere(said) if facts is None else explain.explain(facts)

    awhy: Final = AsyncTwin(why)

    @AdminCommand
    def attempts(self, job_id: int | str) -> Op[Sequence[AttemptRow]]:
        """The job's ended running periods, oldest first."""
        return self._store.jobs.attempts(rules.job_id(job_id))

    aattempts: Final = AsyncTwin(attempts)

    @AdminCommand
    def last_attempts(self, ids: Ids) -> Op[Sequence[AttemptRow]]:
        """The last ended running period of each of up to 1,000 jobs that has one, without trace and
        log: what a list of jobs says of their errors."""
        said = rules.job_ids(ids)
        if len(said) > MAX_PAGE_SIZE:
            raise InvalidValue(f"{len(said):,} jobs at once; {MAX_PAGE_SIZE:,} is the most")
        return self._store.jobs.last_attempts(said)

    alast_attempts: Final = AsyncTwin(last_attempts)

    @AdminCommand
    def items(
        self, job_id: int | str, *, after: str = "", count: int = 1000
    ) -> Op[Mapping[str, Json]]:
        """The job's result items by key, above a key."""
        return self._store.jobs.items(rules.job_id(job_id), after=after, count=count)

    aitems: Final = AsyncTwin(items)

    @AdminCommand
    def leases(
        self, *, worker: UUID | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others: of a worker, of a queue, or
        of all. They are looked for among the 10,000 that end first."""
        check_page_size(count)
        of = None if worker is None else WorkerId(worker)
        return self._store.inspection.leases(worker=of, queue=queue, count=count)

    aleases: Final = AsyncTwin(leases)

    @AdminCommand
    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int = 50,
        after: str | None = None,
    ) -> Op[FailedGroups]:
        """Dead letters by task and error signature, in this order, counted up to 10,000 each;
        `after` is the last page's `next`. Of one queue some 10,000 are looked at in all, and the
        counts say whether there are more."""
        check_page_size(count)
        place = None if after is None else paging.group(after)
        groups = yield from self._store.stats.failed_groups(
            queue=queue, task=task, count=count, after=place
        )
        full = len(groups) == count
        last = paging.group_token(groups[-1].task, groups[-1].signature) if full else None
        return FailedGroups(groups, last)

    afailed_groups: Final = AsyncTwin(failed_groups)

    @AdminCommand
    def retry(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[RetryResult]]:
        """Bring dead letters back for a new life."""
        return _meant(self._store.job_commands.retry(rules.job_ids(ids), by), dry_run=dry_run)

    aretry: Final = AsyncTwin(retry)

    @AdminCommand
    def cancel(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[CancelStatus]]:
        """End queued jobs at once; ask the holders of running ones to end them."""
        return _meant(self._store.job_commands.cancel(rules.job_ids(ids), by), dry_run=dry_run)

    acancel: Final = AsyncTwin(cancel)

    @AdminCommand
    def revoke(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Take running jobs from their holders and end them; False for one that does not run."""
        return _meant(self._store.job_commands.revoke(rules.job_ids(ids), by), dry_run=dry_run)

    arevoke: Final = AsyncTwin(revoke)

    @AdminCommand
    def hold(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Keep queued jobs from being claimed; False for one that is not queued."""
        return _meant(self._store.job_commands.hold(rules.job_ids(ids), by), dry_run=dry_run)

    ahold: Final = AsyncTwin(hold)

    @AdminCommand
    def resume(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Let held jobs go on, in their old place; False for one that is not held."""
        return _meant(self._store.job_commands.resume(rules.job_ids(ids), by), dry_run=dry_run)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def discard(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Delete dead letters for good; False for one that is none."""
        return _meant(self._store.job_commands.discard(rules.job_ids(ids), by), dry_run=dry_run)

    adiscard: Final = AsyncTwin(discard)

    @AdminCommand
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
        return _meant(
            self._store.job_commands.move(rules.job_ids(ids), changes, by), dry_run=dry_run
        )

    amove: Final = AsyncTwin(move)

    @AdminCommand
    def delete(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[DeleteStatus]]:
        """Delete ended jobs for good, with their items and the keys that they still have. One
        that is queued or running is left: cancel it first. Attempts stay as long as others."""
        return _meant(self._store.job_commands.delete(rules.job_ids(ids), by), dry_run=dry_run)

    adelete: Final = AsyncTwin(delete)


def _meant(op: Op[T], *, dry_run: bool) -> Op[T]:
    return as_dry_run(op) if dry_run else op
