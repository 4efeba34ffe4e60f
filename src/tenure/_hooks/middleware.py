"""Middleware around enqueue and around handlers.

Middleware runs in the handler's thread, task and context. It may raise, but it can't change a
result. If middleware swallows an error, the error is raised anyway, because an overly broad
`except` must not mark a job as done.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from tenure._hooks.listeners import Listeners
from tenure._model.event import JobEvent, OnShutdown
from tenure._model.ids import JobId, Json
from tenure._model.job import EnqueueResult, NewJob, State, fields, with_fields
from tenure.errors import ConfigError, InvalidValue


class Draft:
    """A job about to be enqueued. Middleware may change `meta`. The rest is read-only.

    `id` and `created` are set after the yield. They stay None for a follow-up, which is enqueued
    when its parent job completes.
    """

    def __init__(self, job: NewJob) -> None:
        self._job = job
        self.meta: dict[str, Json] = dict(fields(job.meta))
        self.id: JobId | None = None
        self.created: bool | None = None

    def __repr__(self) -> str:
        return f"<Draft {self.task}>" if self.id is None else f"<Draft {self.task} {self.id}>"

    @property
    def task(self) -> str:
        """The task's name."""
        return self._job.task

    @property
    def queue(self) -> str:
        """The queue."""
        return self._job.queue

    @property
    def args(self) -> Mapping[str, Json]:
        """The stored arguments by name."""
        args: Mapping[str, Json] = self._job.args
        return args

    @property
    def priority(self) -> int:
        """The priority. 9 is the most urgent."""
        return self._job.priority

    @property
    def key(self) -> str | None:
        """The deduplication key within its task, if any."""
        return self._job.key

    @property
    def tags(self) -> list[str]:
        """The tags."""
        return list(self._job.meta.get("tags", ()))


class EnqueueScope:
    # All middleware sees a store error, and the caller gets the error even if a middleware swallows
    # it.

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
        self._stored: list[tuple[NewJob, EnqueueResult]] = []

    def __enter__(self) -> Self:
        return self

    @property
    def has_no_middleware(self) -> bool:
        return self._stack is None

    def before(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """Enter the middleware, and return the jobs to store. An exception rejects them all."""
        if self._stack is None:
            return jobs
        self._drafts = []
        admitted = []
        for job in jobs:
            draft = Draft(job)
            context = copy_context() if self._many else None
            for middleware in self._middleware:
                manager = middleware(draft)
                self._stack.enter_context(_InOwnContext(manager, context) if context else manager)
            self._drafts.append(draft)
            admitted.append(
                replace(job, meta=with_fields(job.meta, draft.meta)) if draft.meta else job
            )
        return admitted

    def after(self, jobs: Sequence[NewJob], answers: Sequence[EnqueueResult]) -> None:
        for draft, answer in zip(self._drafts, answers if self._drafts else (), strict=True):
            draft.id, draft.created = answer.id, answer.created
        if "enqueued" in self._listeners.by_name:
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
                    self._listeners.deliver(_enqueued(job, answer.id))
        if self._stack is not None:
            self._stack.__exit__(kind, error, trace)


class _InOwnContext(AbstractContextManager[None]):
    """Run one job's middleware in its own context, so that spans don't leak between jobs."""

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


Manager = Callable[[Any], AbstractContextManager[None] | AbstractAsyncContextManager[None]]
_PLACES = ("enqueue", "run")
_KINDS = ("def", "async")


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    manager: Manager
    awaits: bool
    only: str | None

    def fits(self, *, is_async: bool) -> bool:
        return self.only is None or self.only == ("async" if is_async else "def")


class Hooks:
    """An app's middleware and listeners, in registration order."""

    def __init__(self, *, at_end: OnShutdown) -> None:
        self.listeners: Listeners = Listeners(at_end)
        self._enqueue: list[Callable[[Draft], AbstractContextManager[None]]] = []
        self._run: list[Layer] = []
        self._by_kind: dict[bool, Sequence[Layer]] = {True: (), False: ()}

    def passage(self, *, many: bool = False) -> EnqueueScope:
        return EnqueueScope(self._enqueue, self.listeners, many=many)

    def around(self, *, is_async: bool) -> Sequence[Layer]:
        """Return the middleware for this kind of handler, outermost first."""
        return self._by_kind[is_async]

    def add(self, place: str, function: Callable[..., Any], *, only: str | None) -> None:
        """Register middleware. Raise InvalidValue if it is invalid."""
        if place not in _PLACES:
            raise InvalidValue(
                f"middleware cannot wrap {place!r}; "
                'write @app.middleware("enqueue") or @app.middleware("run")'
            )
        if only is not None and place == "enqueue":
            raise InvalidValue("only= is for middleware around run; remove it here")
        if only is not None and only not in _KINDS:
            raise InvalidValue(f'only must be "def" or "async", got {only!r}')
        awaits = _awaits(function)
        if awaits and place == "enqueue":
            raise InvalidValue(
                f"{_name(function)} is an async def, but middleware around enqueue also wraps sync "
                "calls; write it as a def with one yield"
            )
        if awaits and only == "def":
            raise InvalidValue(
                f"{_name(function)} is an async def and cannot wrap a def; "
                "write it as a def with one yield"
            )
        if place == "enqueue":
            self._enqueue.append(contextmanager(function))
            return
        manager = asynccontextmanager(function) if awaits else contextmanager(function)
        self._run.append(Layer(_name(function), manager, awaits, only))
        self._by_kind = {
            kind: tuple(each for each in self._run if each.fits(is_async=kind))
            for kind in (True, False)
        }

    def check(self, kinds: Iterable[tuple[str, bool]]) -> None:
        """Raise ConfigError if async middleware would wrap a `def` task."""
        awaiting = [each for each in self._run if each.awaits and each.only is None]
        if not awaiting:
            return
        for task, is_async in kinds:
            if not is_async:
                raise ConfigError(
                    f"middleware {awaiting[0].name} is an async def and cannot wrap the task "
                    f"{task}, which is a def; write it as a def with one yield, which wraps both, "
                    'or use @app.middleware("run", only="async")'
                )


def _awaits(function: Callable[..., Any]) -> bool:
    """Whether the middleware is async. Raise InvalidValue if it isn't middleware."""
    if not inspect.isgeneratorfunction(function) and not inspect.isasyncgenfunction(function):
        wrapped = getattr(function, "__wrapped__", None)
        if inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped):
            raise InvalidValue(f"{_name(function)} is already decorated; remove @contextmanager")
        raise InvalidValue(
            f"{_name(function)} has no yield; middleware is a function with one yield, "
            "where the wrapped call runs"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise InvalidValue(
            f"{_name(function)} must take one argument, the job or draft: {error}"
        ) from error
    return inspect.isasyncgenfunction(function)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def around(layers: Sequence[Layer], job: Any, call: Callable[[], Any]) -> Any:
    """Call inside these layers, outermost first."""
    entered: list[Any] = []
    raised: BaseException | None = None
    result = None
    try:
        try:
            for layer in layers:
                manager: Any = layer.manager(job)
                manager.__enter__()
                entered.append(manager)
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised = error
        while entered:
            try:
                entered.pop().__exit__(*_seen(raised))
            except BaseException as error:  # noqa: BLE001 - replaces the first error
                raised = error
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None  # Breaks a reference cycle that would last until the next GC.


async def aaround(layers: Sequence[Layer], job: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """Await a call inside these layers, sync or async."""
    entered: list[tuple[Any, bool]] = []
    raised: BaseException | None = None
    result = None
    try:
        try:
            for layer in layers:
                manager: Any = layer.manager(job)
                if layer.awaits:
                    await manager.__aenter__()
                else:
                    manager.__enter__()
                entered.append((manager, layer.awaits))
            result = await call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised = error
        while entered:
            manager, awaits = entered.pop()
            try:
                if awaits:
                    await manager.__aexit__(*_seen(raised))
                else:
                    manager.__exit__(*_seen(raised))
            except BaseException as error:  # noqa: BLE001 - replaces the first error
                raised = error
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None


def _seen(error: BaseException | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if error is None else (type(error), error, error.__traceback__)
