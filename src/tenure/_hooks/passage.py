"""The way of calls into the store, with the middleware around enqueue. Stores nothing itself."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from contextvars import Context, copy_context
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from tenure._hooks.listeners import Listeners
from tenure._model.event import JobEvent
from tenure._model.ids import JobId, Json
from tenure._model.job import Enqueued, NewJob, State, fields, with_fields


class Draft:
    """A job on its way into its queue, as middleware sees it. What is put into `meta` goes with
    the job; all else is to be read.

    `id` and `created` are known after the yield. They stay None for a follow-up, which is
    enqueued when the job that wants it completes.
    """

    def __init__(self, job: NewJob) -> None:
        self._job = job
        self.meta: dict[str, Json] = dict(fields(job.meta))
        self.id: JobId | None = None
        self.created: bool | None = None

    def __repr__(self) -> str:
        return f"<Draft {self.task}{'' if self.id is None else f' {self.id}'}>"

    @property
    def task(self) -> str:
        """The task's name."""
        return self._job.task

    @property
    def queue(self) -> str:
        """The queue it goes into."""
        return self._job.queue

    @property
    def args(self) -> Mapping[str, Json]:
        """The arguments by name, as they are stored."""
        args: Mapping[str, Json] = self._job.args
        return args

    @property
    def priority(self) -> int:
        """The priority, 9 the most urgent."""
        return self._job.priority

    @property
    def key(self) -> str | None:
        """The key that makes it unique within its task, if it has one."""
        return self._job.key

    @property
    def tags(self) -> list[str]:
        """The tags given at enqueue."""
        return list(self._job.meta.get("tags", ()))


class Passage:
    """Holds middleware open from before the first call is stored until all are. An error of the
    store is seen by all of it and goes on to the caller, whatever the middleware makes of it."""

    def __init__(
        self,
        middleware: Sequence[Callable[[Draft], AbstractContextManager[None]]],
        listeners: Listeners,
        *,
        many: bool,
    ) -> None:
        self._middleware = middleware
        self._listeners = listeners
        self._many = many
        self._stack = ExitStack() if middleware else None
        self._drafts: list[Draft] = []
        self._stored: list[tuple[NewJob, Enqueued]] = []

    def __enter__(self) -> Self:
        return self

    @property
    def is_clear(self) -> bool:
        """Whether no middleware goes around what is enqueued."""
        return self._stack is None

    def admit(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The jobs as the middleware wants them stored; what it raises refuses them all."""
        if self._stack is None:
            return jobs
        self._drafts = []
        admitted = []
        for job in jobs:
            draft = Draft(job)
            context = copy_context() if self._many else None
            for middleware in self._middleware:
                manager = middleware(draft)
                self._stack.enter_context(_Apart(manager, context) if context else manager)
            self._drafts.append(draft)
            admitted.append(
                replace(job, meta=with_fields(job.meta, draft.meta)) if draft.meta else job
            )
        return admitted

    def stored(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> None:
        """Note what became of the jobs that were admitted last."""
        for draft, answer in zip(self._drafts, answers if self._drafts else (), strict=True):
            draft.id, draft.created = answer.id, answer.created
        if "enqueued" in self._listeners:
            self._stored += zip(jobs, answers, strict=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            for job, answer in self._stored:
                if answer.created:
                    self._listeners.tell(_enqueued(job, answer.id))
        if self._stack is not None:
            self._stack.__exit__(kind, error, trace)


class _Apart(AbstractContextManager[None]):
    """Middleware of one job among many, in a context of its own: what is open for one of them (a
    span, a bound variable) is not around the next."""

    def __init__(self, manager: AbstractContextManager[None], context: Context) -> None:
        self._manager = manager
        self._context = context

    def __enter__(self) -> None:
        self._context.run(self._manager.__enter__)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._context.run(self._manager.__exit__, kind, error, trace)


def _enqueued(job: NewJob, job_id: JobId) -> JobEvent:
    return JobEvent(
        name="enqueued",
        job_id=job_id,
        task=job.task,
        queue=job.queue,
        state=State.QUEUED,
        attempt=0,
        max_attempts=job.max_attempts,
        key=job.key,
        meta=fields(job.meta),
        at=datetime.now(UTC),
    )
