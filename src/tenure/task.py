"""The registered function: how it is called, enqueued and bound, and with which options.

How it is run is the worker's business; who registers it is the app's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from tenure._hooks.middleware import Hooks
from tenure._model.ids import Json
from tenure._model.job import DEFAULT_PRIORITY, NewJob, UniformBatch
from tenure._rules import idempotency
from tenure._rules.arguments import Parameters
from tenure._rules.leasing import check_ttl
from tenure._store.engine import Engine, arun_on, run_on
from tenure.config import Backoff, duration
from tenure.errors import InvalidValue
from tenure.handle import Handle

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
C_co = TypeVar("C_co", covariant=True)
J_contra = TypeVar("J_contra", contravariant=True)
Seconds = float | timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What one enqueue may say. None leaves it to the task, the queue, the settings."""

    queue: str | None = None
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
    connection: Any = None


# What the loss of an attempt that had begun means: another try, or the end of the job.
OnLoss = Literal["retry", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a task's decorator says of it; what enqueue and worker go by."""

    name: str
    function: Callable[..., Any]
    parameters: Parameters
    takes_job: bool
    is_async: bool
    queue: str = "default"
    priority: int = DEFAULT_PRIORITY
    max_attempts: int | None = None
    max_losses: int | None = None
    timeout: timedelta | None
    lease: timedelta | None = None
    stop_within: timedelta
    backoff: Backoff | None = None
    give_up_on: tuple[type[BaseException], ...] = ()
    expires_in: timedelta | None = None
    process: bool = False
    # Bytes that its process may have of its own.
    memory: int | None = None
    on_loss: OnLoss = "retry"
    aliases: Sequence[str] = field(default=())

    @property
    def fails_on_loss(self) -> bool:
        """Whether a loss is the end of its jobs."""
        return self.on_loss == "fail"


class Enqueuer(Protocol):
    """What a task needs of its app."""

    @property
    def engine(self) -> Engine:
        """The database to enqueue into; made when first asked for."""

    def callers_connection(self) -> Any:
        """The connection whose transaction an enqueue joins when it names none, or None."""

    @property
    def hooks(self) -> Hooks:
        """The middleware and the listeners."""


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """What calls of one task with the same options share: everything but their arguments."""

    job: NewJob
    hooks: Hooks = field(repr=False, compare=False)
    returns: Any
    connection: Any


@dataclass(frozen=True, slots=True)
class BoundCall(Generic[R_co]):
    """A call that is ready to be enqueued, among others, by `app.enqueue_many`."""

    asked: CallTemplate
    args: Json

    @property
    def job(self) -> NewJob:
        """The job that it asks for."""
        return replace(self.asked.job, args=self.args)

    def apply_middleware(self) -> NewJob:
        """The job as the middleware around enqueue wants it, which is told of no answer."""
        with self.asked.hooks.passage() as passage:
            [job] = passage.before([self.job])
        return job


class TaskCall(Generic[P, R]):
    """A task together with the options of its next enqueue."""

    def __init__(self, app: Enqueuer, definition: Definition, options: Options) -> None:
        self._app = app
        self._definition = definition
        self._options = options
        self._asked: CallTemplate | None = None

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put one job into its queue; durable on return, or with the caller's COMMIT if a
        connection was given."""
        bound = self.bind(*args, **kwargs)
        engine = self._app.engine
        connection = self._connection()
        with bound.asked.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.asked.job, [bound.args]))
            op = engine.store.enqueue(jobs)
            answers = run_on(engine, op, connection)
            passage.after(jobs, answers)
        [answer] = answers
        return Handle(engine, answer.id, created=answer.created, returns=bound.asked.returns)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same in the async world."""
        bound = self.bind(*args, **kwargs)
        engine = self._app.engine
        connection = self._connection()
        with bound.asked.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.asked.job, [bound.args]))
            op = engine.store.enqueue(jobs)
            answers = await arun_on(engine, op, connection)
            passage.after(jobs, answers)
        [answer] = answers
        return Handle(engine, answer.id, created=answer.created, returns=bound.asked.returns)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundCall[R]:
        """The call, checked against the signature but not enqueued yet."""
        named = self._definition.parameters.dump(args, kwargs)
        if self._asked is None:
            self._asked = CallTemplate(
                new_job(self._definition, self._options, {}),
                self._app.hooks,
                self._definition.parameters.returns,
                self._options.connection,
            )
        return BoundCall(self._asked, named)

    def _connection(self) -> Any:
        named = self._options.connection
        return self._app.callers_connection() if named is None else named


class Registered(TaskCall[P, R]):
    """What every registered function has, whatever its handler's first parameter is."""

    def __init__(self, app: Enqueuer, definition: Definition) -> None:
        super().__init__(app, definition, Options())
        self.__wrapped__: Callable[..., Any] = definition.function
        self.__doc__ = definition.function.__doc__
        self.__name__: str = definition.function.__name__
        self.__qualname__ = definition.function.__qualname__
        self.__module__ = definition.function.__module__

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    @property
    def name(self) -> str:
        """The name by which jobs know the task."""
        return self._definition.name

    @property
    def app(self) -> Enqueuer:
        """The app that it is registered with."""
        return self._app

    @property
    def definition(self) -> Definition:
        """What the decorator said."""
        return self._definition

    def handle(self, job_id: int | str) -> Handle[R]:
        """The handle of a job by its id, to look at it from elsewhere; asks nothing yet. A job of
        another task is not seen: its `get()` is None."""
        known_as = (self.name, *self._definition.aliases)
        return Handle(
            self._app.engine,
            idempotency.job_id(job_id),
            created=False,
            returns=self._definition.parameters.returns,
            tasks=known_as,
        )

    def using(
        self,
        *,
        queue: str | None = None,
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
        connection: Any = None,
    ) -> TaskCall[P, R]:
        """The task with options for the next enqueue.

        `key` makes the job unique within its task while it lives, and `key_for` after;
        `expires_in` is how long after the enqueue it is still worth starting; `connection` is
        yours, and the job exists once your transaction commits.
        """
        options = Options(
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
            connection=connection,
        )
        return TaskCall(self._app, self._definition, options)


class Task(Registered[P, R], Generic[P, R, C_co]):
    """A registered function. Called, it is the plain function that it was."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function here and now; nothing is enqueued."""
        result: C_co = self._definition.function(*args, **kwargs)
        return result


class JobTask(Registered[P, R], Generic[P, R, C_co, J_contra]):
    """A registered function whose first parameter is the job's handle."""

    def __call__(self, job: J_contra, /, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function here and now with a handle of one's own; nothing is enqueued."""
        result: C_co = self._definition.function(job, *args, **kwargs)
        return result


def new_job(task: Definition, options: Options, args: Json) -> NewJob:
    """The job that a call asks for: the options' word before the task's."""
    _check(task, options)
    expires_in = _first(_seconds(options.expires_in), task.expires_in)
    delay = _seconds(options.delay)
    if expires_in is not None and delay is not None and delay >= expires_in:
        raise InvalidValue(
            f"delay is {delay} and expires_in {expires_in}: the job would never run; "
            "expires_in counts from the enqueue"
        )
    _check_in_time(options.run_at, expires_in)
    meta: dict[str, Json] = {}
    if options.tags:
        meta["tags"] = [str(tag) for tag in options.tags]
    if options.timeout is not None:
        meta["timeout"] = duration(options.timeout).total_seconds()
    if expires_in is not None:
        meta["expires_in"] = expires_in.total_seconds()
    return NewJob(
        task.name,
        queue=task.queue if options.queue is None else options.queue,
        args=args,
        priority=task.priority if options.priority is None else options.priority,
        run_at=options.run_at,
        delay=delay,
        key=options.key,
        key_for=_seconds(options.key_for),
        max_attempts=_first(options.max_attempts, task.max_attempts),
        max_losses=0 if task.fails_on_loss else task.max_losses,
        lease=_first(_seconds(options.lease), task.lease),
        target=options.target,
        meta=meta,
    )


def time_limit(task: Definition, meta: Json) -> timedelta | None:
    """How long an attempt may take: what the call said, else the task's."""
    said = (meta or {}).get("timeout")
    return task.timeout if said is None else timedelta(seconds=said)


def _check(task: Definition, options: Options) -> None:
    """Refuse options that could not be meant. What holds for every job is checked with it."""
    for name, wait in (("timeout", options.timeout), ("expires_in", options.expires_in)):
        if wait is not None and duration(wait) <= timedelta(0):
            raise InvalidValue(f"{name} is {wait}; it must be more than nothing")
    if isinstance(options.tags, str):
        raise InvalidValue(f"tags are several: write tags=[{options.tags!r}]")
    if options.lease is not None:
        check_ttl(duration(options.lease), stop_within=task.stop_within)


def _check_in_time(run_at: datetime | None, expires_in: timedelta | None) -> None:
    """Refuse an instant at which the job is no longer worth starting. What is no instant, or has no
    zone, is refused with the job."""
    if expires_in is None or not isinstance(run_at, datetime) or run_at.tzinfo is None:
        return
    if run_at - datetime.now(UTC) >= expires_in:
        raise InvalidValue(
            f"run_at is {run_at} and expires_in {expires_in}: the job would never run; "
            "expires_in counts from the enqueue"
        )


def _first(said: T | None, otherwise: T | None) -> T | None:
    """What was said, also where it is nothing like a zero; else the other."""
    return otherwise if said is None else said


@overload
def _seconds(value: None) -> None: ...
@overload
def _seconds(value: Seconds) -> timedelta: ...
def _seconds(value: Seconds | None) -> timedelta | None:
    return None if value is None else duration(value)
