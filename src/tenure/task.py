"""The registered function: how it is called, enqueued and bound, and with which options.

How it is run is the worker's business; who registers it is the app's.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import (
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from tenure._hooks.middleware import Hooks
from tenure._model.ids import Json
from tenure._model.job import DEFAULT_PRIORITY, NewJob, UniformBatch
from tenure._rules import idempotency
from tenure._rules.arguments import Parameters
from tenure._rules.leasing import check_ttl
from tenure._store.engine import Engine
from tenure.config import DEFAULTS, Backoff, OnLoss, duration
from tenure.errors import InvalidValue
from tenure.handle import Handle

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
C_co = TypeVar("C_co", covariant=True)
J_contra = TypeVar("J_contra", contravariant=True)
Seconds = float | timedelta


class JobOptions(TypedDict, total=False):
    """Options of a job, however it is made. One that is omitted or None is left to the task, the
    queue and the settings."""

    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: Seconds | None
    expires_in: Seconds | None
    tags: Sequence[str] | None


class EnqueueOptions(JobOptions, total=False):
    """Options of one enqueue."""

    delay: Seconds | None
    run_at: datetime | None
    key: str | None
    key_for: Seconds | None
    lease: Seconds | None
    target: int | None


class CallOptions(EnqueueOptions, total=False):
    """Options of one enqueue by a program that has the task."""

    connection: Any


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

    def __init__(self, app: Enqueuer, definition: Definition, options: CallOptions) -> None:
        self._app = app
        self._definition = definition
        self._options = options
        self._asked: CallTemplate | None = None

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Put one job into its queue; durable on return, or with the caller's COMMIT if a
        connection was given."""
        bound = self.bind(*args, **kwargs)
        connection = self._connection()
        engine = self._app.engine
        with bound.asked.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.asked.job, [bound.args]))
            op = engine.store.jobs.enqueue(jobs)
            answers = engine.run(op, connection)
            passage.after(jobs, answers)
        [answer] = answers
        return Handle(engine, answer.id, created=answer.created, returns=bound.asked.returns)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same in the async world."""
        bound = self.bind(*args, **kwargs)
        connection = self._connection()
        engine = self._app.engine
        with bound.asked.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.asked.job, [bound.args]))
            op = engine.store.jobs.enqueue(jobs)
            answers = await engine.arun(op, connection)
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
                self._options.get("connection"),
            )
        return BoundCall(self._asked, named)

    def _connection(self) -> Any:
        named = self._options.get("connection")
        return self._app.callers_connection() if named is None else named


class Registered(TaskCall[P, R]):
    """What every registered function has, whatever its handler's first parameter is."""

    def __init__(self, app: Enqueuer, definition: Definition) -> None:
        super().__init__(app, definition, {})
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

    def using(self, **options: Unpack[CallOptions]) -> TaskCall[P, R]:
        """Return the task with options for the next enqueue.

        `key` makes the job unique within its task while it lives, and `key_for` after;
        `expires_in` is how long after the enqueue it is still worth starting; `connection` is
        yours, and the job exists once your transaction commits.
        """
        check_names(options, CallOptions.__optional_keys__)
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


def check_names(given: Mapping[str, object], names: AbstractSet[str]) -> None:
    """Raise TypeError for a keyword that is none of these names, as a call with it would."""
    for name in given:
        if name not in names:
            raise TypeError(f"got an unexpected keyword argument {name!r}")


def new_job(task: Definition, options: EnqueueOptions, args: Json) -> NewJob:
    """Return the job that a call asks for: its options before the task's."""
    tags, timeout, run_at = options.get("tags"), options.get("timeout"), options.get("run_at")
    _check(task, options)
    expires_in = _first(_seconds(options.get("expires_in")), task.expires_in)
    delay = _seconds(options.get("delay"))
    if expires_in is not None and delay is not None and delay >= expires_in:
        raise InvalidValue(
            f"delay is {delay} and expires_in {expires_in}: the job would never run; "
            "expires_in counts from the enqueue"
        )
    _check_in_time(run_at, expires_in)
    meta: dict[str, Json] = {}
    if tags:
        meta["tags"] = [str(tag) for tag in tags]
    if timeout is not None:
        meta["timeout"] = duration(timeout).total_seconds()
    if expires_in is not None:
        meta["expires_in"] = expires_in.total_seconds()
    return NewJob(
        task.name,
        queue=_first(options.get("queue"), task.queue),
        args=args,
        priority=_first(options.get("priority"), task.priority),
        run_at=run_at,
        delay=delay,
        key=options.get("key"),
        key_for=_seconds(options.get("key_for")),
        max_attempts=_first(options.get("max_attempts"), task.max_attempts),
        max_losses=0 if task.fails_on_loss else task.max_losses,
        lease=_first(_seconds(options.get("lease")), task.lease),
        target=options.get("target"),
        meta=meta,
    )


@lru_cache(maxsize=256)
def unregistered_task(name: str) -> Definition:
    """Return the definition of a task of which only the name is known here."""

    def unknown() -> None:
        """Stands for the function, which is in the program that has the task."""

    return Definition(
        name=name,
        function=unknown,
        parameters=Parameters(unknown, skip=0),
        takes_job=False,
        is_async=False,
        timeout=None,
        stop_within=DEFAULTS.stop_within,
    )


def time_limit(task: Definition, meta: Json) -> timedelta | None:
    """How long an attempt may take: what the call said, else the task's."""
    said = (meta or {}).get("timeout")
    return task.timeout if said is None else timedelta(seconds=said)


def _check(task: Definition, options: EnqueueOptions) -> None:
    """Refuse options that could not be meant. What holds for every job is checked with it."""
    waits = {"timeout": options.get("timeout"), "expires_in": options.get("expires_in")}
    for name, wait in waits.items():
        if wait is not None and duration(wait) <= timedelta(0):
            raise InvalidValue(f"{name} is {wait}; it must be more than nothing")
    tags, lease = options.get("tags"), options.get("lease")
    if isinstance(tags, str):
        raise InvalidValue(f"tags are several: write tags=[{tags!r}]")
    if lease is not None:
        check_ttl(duration(lease), stop_within=task.stop_within)


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


def _first(said: T | None, otherwise: T) -> T:
    """Return `said` unless it is None, else the other."""
    return otherwise if said is None else said


@overload
def _seconds(value: None) -> None: ...
@overload
def _seconds(value: Seconds) -> timedelta: ...
def _seconds(value: Seconds | None) -> timedelta | None:
    return None if value is None else duration(value)
