"""Job commands: enqueue, get, list, cancel, retry and more.

This file is longer than 500 lines because its docstrings are the reference for `app.admin.jobs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Unpack
from uuid import UUID

from tenure import kinds
from tenure._model.attempt import AttemptRow
from tenure._model.audit import By
from tenure._model.explanation import Explanation
from tenure._model.ids import JobId, Json, WorkerId
from tenure._model.job import EnqueueResult, JobRow, NewJob, State, with_fields
from tenure._model.lease import LeaseRow
from tenure._model.operation import Changes
from tenure._model.queue import EVERY_QUEUE
from tenure._model.results import CancelStatus, DeleteStatus
from tenure._model.stats import FailedGroup
from tenure._rules import access, explain, idempotency, paging, payload
from tenure._rules import idempotency as rules
from tenure._store.steps import Op, atomically
from tenure.admin._commands import (
    MAX_PAGE_SIZE,
    AdminCommand,
    AsyncTwin,
    CommandGroup,
    apply,
    check_kinds,
    check_page_size,
)
from tenure.admin.edits import EditCommands
from tenure.admin.search import Ids, SearchCommands
from tenure.errors import InvalidValue, KeyHeldElsewhere, PayloadError
from tenure.task import EnqueueOptions, check_names, new_job

_MOST_AT_ONCE = 1000


class NamedJobOptions(EnqueueOptions, total=False):
    """Options for a job enqueued by task name, in addition to `EnqueueOptions`.

    The task's own options aren't known here. Omitted options come from the queue or the
    installation's settings.

    Attributes:
        held: Enqueue the job on hold (default: False).
    """

    held: bool


class JobRequest:
    """A job to enqueue by task name.

    Args:
        task: The task's name.
        args: The task's arguments by name.
        queue: The queue for the job (default: `"default"`).
        priority: 0 to 9, where 9 is the most urgent (default: 5).
        max_attempts: How many times to try the job.
        timeout: How long an attempt may run.
        expires_in: Cancel the job if it hasn't started this long after being enqueued.
        tags: Short strings stored with the job.
        delay: Wait this long before the first attempt.
        run_at: The earliest start, as an aware datetime.
        key: The deduplication key.
        key_for: How long to keep the key after the job ends, or `FOREVER` (default: 0).
        lease: How long a claim lasts between renewals.
        target: Complete the job once it has reported this many distinct items.
        held: Enqueue the job on hold (default: False).
    """

    def __init__(
        self, *, task: str, args: Mapping[str, Json], **options: Unpack[NamedJobOptions]
    ) -> None:
        check_names(options, NamedJobOptions.__optional_keys__)
        self.task = task
        self.args = args
        self.options = options


@dataclass(frozen=True, slots=True)
class EnqueuedMany:
    """The result of `enqueue_many`.

    Attributes:
        jobs: One result for each request, in order.
        repeated: Whether the jobs were enqueued by an earlier request with the same idempotency
            key.
    """

    jobs: Sequence[EnqueueResult]
    repeated: bool


class EnqueueCommands(CommandGroup):
    """Commands that enqueue jobs by task name."""

    @AdminCommand
    def enqueue(
        self, task: str, args: Mapping[str, Json], by: By, **options: Unpack[NamedJobOptions]
    ) -> Op[EnqueueResult]:
        """Enqueue a job by task name.

        The task's own options aren't known here. Omitted options come from the queue or the
        installation's settings.

        Args:
            task: The task's name.
            args: The task's arguments by name.
            by: Who is doing this and why, for the audit log.
            queue: The queue for the job (default: `"default"`).
            priority: 0 to 9, where 9 is the most urgent (default: 5).
            max_attempts: How many times to try the job.
            timeout: How long an attempt may run.
            expires_in: Cancel the job if it hasn't started this long after being enqueued.
            tags: Short strings stored with the job.
            delay: Wait this long before the first attempt.
            run_at: The earliest start, as an aware datetime.
            key: The deduplication key.
            key_for: How long to keep the key after the job ends, or `FOREVER` (default: 0).
            lease: How long a claim lasts between renewals.
            target: Complete the job once it has reported this many distinct items.
            held: Enqueue the job on hold (default: False).

        Returns:
            The job's id, and whether the job is new.

        Raises:
            InvalidValue: An option is out of range.
            PayloadError: The arguments are not JSON, or are too large.
        """
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
        patterns: Sequence[str] | None = None,
    ) -> Op[EnqueuedMany]:
        """Enqueue up to 1,000 jobs by task name: all of them, or none.

        Args:
            jobs: The jobs to enqueue.
            by: Who is doing this and why, for the audit log.
            idempotency_key: Repeating the request with this key within a day returns the first
                response and enqueues nothing. Keys are separate for each actor.
            notes: Fields to store in each job's `meta`. They are ignored when comparing repeated
                requests.
            patterns: Queue patterns, such as `"mail.*"`. Refuse a key that is held by a job in a
                queue that matches none of them (default: all queues match).

        Returns:
            One result for each job, in order.

        Raises:
            InvalidValue: There are too many jobs, or an option is out of range.
            IdempotencyConflict: The key belongs to a different request.
            KeyHeldElsewhere: A key is held by a job in a queue that `patterns` don't match.
        """
        if not 1 <= len(jobs) <= _MOST_AT_ONCE:
            raise InvalidValue(
                f"jobs must be 1 to {_MOST_AT_ONCE:,}, got {len(jobs):,}; send them in parts"
            )
        new = [_new(request) for request in jobs]
        for job in new:
            # Before the digest, which needs valid JSON.
            payload.check(job)
            payload.encode(job.args)
        requested = new
        if notes:
            new = [replace(job, meta=with_fields(job.meta, notes)) for job in new]
        if idempotency_key is None:
            enqueued = yield from atomically(self._enqueue(new, by, patterns))
            return EnqueuedMany(enqueued, repeated=False)
        stored, repeated = yield from self._store.tokens.once(
            by.actor,
            idempotency_key,
            idempotency.digest(requested),
            self._stored_answer(new, by, patterns),
        )
        answers = [EnqueueResult(JobId(job_id), created) for job_id, created in stored]
        return EnqueuedMany(answers, repeated)

    aenqueue_many: Final = AsyncTwin(enqueue_many)

    def _stored_answer(
        self, jobs: Sequence[NewJob], by: By, patterns: Sequence[str] | None
    ) -> Op[Json]:
        """Enqueue, and return the results as JSON."""
        answers = yield from self._enqueue(jobs, by, patterns)
        return [[answer.id, answer.created] for answer in answers]

    def _enqueue(
        self, jobs: Sequence[NewJob], by: By, patterns: Sequence[str] | None = None
    ) -> Op[Sequence[EnqueueResult]]:
        yield from check_kinds(self._store, {job.task for job in jobs})
        answers = yield from self._store.jobs.enqueue(jobs)
        if patterns is not None and not access.matches(patterns, EVERY_QUEUE):
            yield from self._check_holders(answers, patterns)
        made = [f"job:{answer.id}" for answer in answers if answer.created]
        yield from self._store.audit.record(by, "enqueue", made)
        return answers

    def _check_holders(self, answers: Sequence[EnqueueResult], patterns: Sequence[str]) -> Op[None]:
        """Refuse keys held in other queues, because the caller must not learn of those jobs."""
        made = {answer.id for answer in answers if answer.created}
        holders = sorted({answer.id for answer in answers} - made)
        queues = (yield from self._store.jobs.queues_of(holders)) if holders else {}
        # A key's holder that has been pruned is treated like a job in another queue.
        if any(h not in queues or not access.matches(patterns, queues[h]) for h in holders):
            raise KeyHeldElsewhere(
                "a job that you may not see holds the key; use another key, or ask an operator to "
                "free it: tenure key free TASK KEY"
            )


def _new(request: JobRequest) -> NewJob:
    if not isinstance(request.args, Mapping):
        raise PayloadError(f'args must be a mapping, got {request.args!r}; write {{"name": "Ada"}}')
    args = kinds.arguments(request.task, request.args)
    job = new_job(kinds.definition(request.task), request.options, args)
    return replace(job, held=request.options.get("held", False))


@dataclass(frozen=True, slots=True)
class JobList:
    """A page of jobs, newest first. It may be shorter than requested.

    Attributes:
        jobs: The jobs.
        next: Pass it as `after` to get the next page. None on the last page.
    """

    jobs: Sequence[JobRow]
    next: str | None


@dataclass(frozen=True, slots=True)
class FailedGroups:
    """A page of dead letters, grouped by task and error signature.

    Attributes:
        groups: The groups.
        next: Pass it as `after` to get the next page. None on the last page.
    """

    groups: Sequence[FailedGroup]
    next: str | None


class Jobs(EnqueueCommands, SearchCommands, EditCommands):
    """Job commands: `app.admin.jobs`. Changes take many ids and return results in order."""

    @AdminCommand
    def get(self, job_id: int | str) -> Op[JobRow | None]:
        """Get a job by id.

        Args:
            job_id: The job's id, as a number or a string.

        Returns:
            The job, or None if it does not exist or was removed.
        """
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
        patterns: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[JobList]:
        """List jobs in one state, newest first.

        One call searches a limited number of rows, so a page may be shorter than `count`.

        Args:
            state: The state.
            queue: Only this queue.
            task: Only this task.
            signature: Only dead letters with this error signature.
            count: The page size, 1 to 1,000 (default: 50).
            after: The previous page's `next`.
            patterns: Only queues that match one of these, such as `"mail.*"` (default: all queues).
            largest: Omit payload fields larger than this many bytes of JSON. 0 omits all of them
                (default: omit none).

        Returns:
            A page of jobs.

        Raises:
            InvalidValue: `count` or `after` is invalid.
        """
        check_page_size(count)
        place = None if after is None else paging.place(after)
        page = yield from self._store.job_queries.list(
            State(state),
            queue=queue,
            task=task,
            signature=signature,
            count=count,
            place=place,
            granted=access.like_patterns(patterns),
            largest=largest,
        )
        return JobList(page.jobs, None if page.next is None else paging.token(page.next))

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def why(self, job_id: int | str) -> Op[Explanation]:
        """Explain a job: why it is not running, which worker is running it, or how it ended.

        Args:
            job_id: The job's id, as a number or a string.

        Returns:
            The explanation.
        """
        number = rules.job_id(job_id)
        facts = yield from self._store.stats.facts(number)
        return explain.nowhere(number) if facts is None else explain.explain(facts)

    awhy: Final = AsyncTwin(why)

    @AdminCommand
    def attempts(self, job_id: int | str) -> Op[Sequence[AttemptRow]]:
        """List a job's ended attempts, oldest first.

        Args:
            job_id: The job's id, as a number or a string.

        Returns:
            The attempts.
        """
        return self._store.jobs.attempts(rules.job_id(job_id))

    aattempts: Final = AsyncTwin(attempts)

    @AdminCommand
    def last_attempts(self, ids: Ids) -> Op[Sequence[AttemptRow]]:
        """Get each job's last ended attempt, without its traceback and log.

        Args:
            ids: Up to 1,000 job ids, as numbers or strings.

        Returns:
            One attempt for each job that has one.

        Raises:
            InvalidValue: There are too many ids.
        """
        numbers = rules.job_ids(ids)
        if len(numbers) > MAX_PAGE_SIZE:
            raise InvalidValue(
                f"ids must be at most {MAX_PAGE_SIZE:,}, got {len(numbers):,}; ask in parts"
            )
        return self._store.jobs.last_attempts(numbers)

    alast_attempts: Final = AsyncTwin(last_attempts)

    @AdminCommand
    def items(
        self, job_id: int | str, *, after: str = "", count: int = 1000
    ) -> Op[Mapping[str, Json]]:
        """List the items that a job reported, sorted by key.

        Args:
            job_id: The job's id, as a number or a string.
            after: Only keys after this one, to get the next page.
            count: The page size (default: 1,000).

        Returns:
            The items by key.
        """
        return self._store.jobs.items(rules.job_id(job_id), after=after, count=count)

    aitems: Final = AsyncTwin(items)

    @AdminCommand
    def leases(
        self,
        *,
        worker: UUID | None = None,
        queue: str | None = None,
        count: int = 100,
        patterns: Sequence[str] | None = None,
    ) -> Op[Sequence[LeaseRow]]:
        """List running jobs' leases, soonest to expire first.

        Only the 10,000 leases that expire soonest are searched.

        Args:
            worker: Only this worker's leases.
            queue: Only leases in this queue.
            count: The page size, 1 to 1,000 (default: 100).
            patterns: Only queues that match one of these, such as `"mail.*"` (default: all queues).

        Returns:
            The leases.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        of = None if worker is None else WorkerId(worker)
        return self._store.inspection.leases(
            worker=of, queue=queue, count=count, granted=access.like_patterns(patterns)
        )

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
        """Group dead letters by task and error signature, and count up to 10,000 in each group.

        Args:
            queue: Only this queue. The search is then limited to about 10,000 dead letters in
                total.
            task: Only this task.
            count: The page size, 1 to 1,000 (default: 50).
            after: The previous page's `next`.

        Returns:
            A page of groups.

        Raises:
            InvalidValue: `count` or `after` is invalid.
        """
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
    def cancel(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[CancelStatus]]:
        """Cancel jobs. Queued jobs end immediately. Running handlers are asked to stop.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One status for each id.
        """
        return apply(self._store.job_commands.cancel(rules.job_ids(ids), by), dry_run=dry_run)

    acancel: Final = AsyncTwin(cancel)

    @AdminCommand
    def revoke(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Take running jobs away from their workers and end them.

        The worker can no longer write to the job. Prefer `cancel`.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One value for each id: True, or False if the job is not running.
        """
        return apply(self._store.job_commands.revoke(rules.job_ids(ids), by), dry_run=dry_run)

    arevoke: Final = AsyncTwin(revoke)

    @AdminCommand
    def hold(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Put queued jobs on hold. No worker takes them until you resume them.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One value for each id: True, or False if the job is not queued.
        """
        return apply(self._store.job_commands.hold(rules.job_ids(ids), by), dry_run=dry_run)

    ahold: Final = AsyncTwin(hold)

    @AdminCommand
    def resume(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Release held jobs. They keep their place in the queue.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One value for each id: True, or False if the job is not held.
        """
        return apply(self._store.job_commands.resume(rules.job_ids(ids), by), dry_run=dry_run)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def discard(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[bool]]:
        """Permanently delete dead letters.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One value for each id: True, or False if the job is not a dead letter.
        """
        return apply(self._store.job_commands.discard(rules.job_ids(ids), by), dry_run=dry_run)

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
        """Change the queue, priority or start time of queued jobs.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            queue: The new queue (default: unchanged).
            priority: The new priority, 0 to 9 (default: unchanged).
            run_at: The new start time, not in the past (default: unchanged).
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One value for each id: True, or False if the job is not queued.
        """
        changes = Changes(queue=queue, priority=priority, run_at=run_at)
        return apply(
            self._store.job_commands.move(rules.job_ids(ids), changes, by), dry_run=dry_run
        )

    amove: Final = AsyncTwin(move)

    @AdminCommand
    def delete(self, ids: Ids, by: By, *, dry_run: bool = False) -> Op[Sequence[DeleteStatus]]:
        """Permanently delete ended jobs, with their items and keys.

        Cancel a queued or running job first. Attempts are kept until their retention ends.

        Args:
            ids: Job ids, as numbers or strings.
            by: Who is doing this and why, for the audit log.
            dry_run: Report the outcome without changing anything (default: False).

        Returns:
            One status for each id.
        """
        return apply(self._store.job_commands.delete(rules.job_ids(ids), by), dry_run=dry_run)

    adelete: Final = AsyncTwin(delete)
