"""Jobs by the name of their task, one or many, without the program that has the task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from tenure._model.audit import By
from tenure._model.ids import JobId, Json
from tenure._model.job import Enqueued, NewJob, with_fields
from tenure._rules import idempotency, payload
from tenure._rules.arguments import Parameters
from tenure._store.port import Op, atomically
from tenure.admin.faces import Twin, Verb, Verbs
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue, PayloadError
from tenure.task import Definition, Options, Seconds, new_job

_MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job that is asked for by its task's name. What is not given is the queue's, the settings',
    or built in: the task's own options are in the program that has it, and unknown here."""

    task: str
    args: Mapping[str, Json]
    queue: str = "default"
    priority: int | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    key: str | None = None
    key_for: Seconds | None = None
    max_attempts: int | None = None
    lease: Seconds | None = None
    timeout: Seconds | None = None
    expires_in: Seconds | None = None
    tags: Sequence[str] = ()
    target: int | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class EnqueuedMany:
    """The answers to many enqueues, in the order asked. `repeated`: they were given before, to the
    same request with the same idempotency key, and nothing was enqueued now."""

    jobs: Sequence[Enqueued]
    repeated: bool


class Enqueuing(Verbs):
    """The verbs that enqueue jobs by the names of their tasks."""

    @Verb
    def enqueue(
        self,
        task: str,
        args: Mapping[str, Json],
        by: By,
        *,
        queue: str = "default",
        priority: int | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        key_for: Seconds | None = None,
        max_attempts: int | None = None,
        lease: Seconds | None = None,
        timeout: Seconds | None = None,
        expires_in: Seconds | None = None,
        tags: Sequence[str] = (),
        target: int | None = None,
        held: bool = False,
    ) -> Op[Enqueued]:
        """Enqueue a job of a task by its name. The task's own options are in the program that has
        it and unknown here: what is not given is the queue's, the settings', or built in."""
        request = JobRequest(
            task=task,
            args=args,
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            key=key,
            key_for=key_for,
            max_attempts=max_attempts,
            lease=lease,
            timeout=timeout,
            expires_in=expires_in,
            tags=tags,
            target=target,
            held=held,
        )
        [answer] = yield from atomically(self._enqueue([_new(request)], by))
        return answer

    aenqueue: Final = Twin(enqueue)

    @Verb
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
        told, repeated = yield from self._store.once(
            by.actor, idempotency_key, idempotency.digest(asked), self._told(new, by)
        )
        answers = [Enqueued(JobId(job_id), created) for job_id, created in told]
        return EnqueuedMany(answers, repeated)

    aenqueue_many: Final = Twin(enqueue_many)

    def _told(self, jobs: Sequence[NewJob], by: By) -> Op[Json]:
        """Enqueue, and answer in a form that can be kept."""
        answers = yield from self._enqueue(jobs, by)
        return [[answer.id, answer.created] for answer in answers]

    def _enqueue(self, jobs: Sequence[NewJob], by: By) -> Op[Sequence[Enqueued]]:
        answers = yield from self._store.enqueue(jobs)
        made = [f"job:{answer.id}" for answer in answers if answer.created]
        yield from self._store.note(by, "enqueue", made)
        return answers


def _new(request: JobRequest) -> NewJob:
    if not isinstance(request.args, Mapping):
        raise PayloadError('the arguments are no object; name each one, as in {"name": "Ada"}')
    options = Options(
        queue=request.queue,
        priority=request.priority,
        delay=request.delay,
        run_at=request.run_at,
        key=request.key,
        key_for=request.key_for,
        max_attempts=request.max_attempts,
        lease=request.lease,
        timeout=request.timeout,
        expires_in=request.expires_in,
        tags=request.tags,
        target=request.target,
    )
    job = new_job(elsewhere(request.task), options, dict(request.args))
    return replace(job, held=request.held)


@lru_cache(maxsize=256)
def elsewhere(task: str) -> Definition:
    """A task of which only the name is known here."""

    def unknown() -> None:
        """Stands for the function, which is in the program that has the task."""

    return Definition(
        name=task,
        function=unknown,
        parameters=Parameters(unknown, skip=0),
        takes_job=False,
        is_async=False,
        timeout=None,
        stop_within=DEFAULTS.stop_within,
    )
