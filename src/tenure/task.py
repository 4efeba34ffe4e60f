"""Tasks: call, enqueue or bind a registered function, with per-call options."""

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
    """Job options. If one is omitted or None, the value from the task, queue or settings applies.

    Attributes:
        queue: The queue for the job.
        priority: 0 to 9, where 9 is the most urgent.
        max_attempts: How many times to try the job.
        timeout: How long an attempt may run. In `using()`, None means no time limit.
        expires_in: Cancel the job if it hasn't started this long after being enqueued.
        tags: Short strings stored with the job, available as `job.tags`.
    """

    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: Seconds | None
    expires_in: Seconds | None
    tags: Sequence[str] | None


class EnqueueOptions(JobOptions, total=False):
    """Options for one enqueue, in addition to `JobOptions`.

    Attributes:
        delay: Wait this long before the first attempt.
        run_at: The earliest start, as an aware datetime. Cannot be combined with `delay`.
        key: The deduplication key. Until the job ends, enqueueing this task again with the same key
            returns the first job.
        key_for: How long to keep the key after the job ends, or `FOREVER` (default: 0).
        lease: How long a claim lasts between renewals.
        target: Complete the job once it has reported this many distinct items.
    """

    delay: Seconds | None
    run_at: datetime | None
    key: str | None
    key_for: Seconds | None
    lease: Seconds | None
    target: int | None


class CallOptions(EnqueueOptions, total=False):
    """Options for `using`, in addition to `EnqueueOptions`.

    Attributes:
        connection: Your open connection or session. The job exists once you commit.
    """

    connection: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A task's name, function and options, as validated by the decorator."""

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
    # In bytes, for the handler's own process.
    memory: int | None = None
    on_loss: OnLoss = "retry"
    aliases: Sequence[str] = field(default=())

    @property
    def fails_on_loss(self) -> bool:
        """Whether losing an attempt ends the job."""
        return self.on_loss == "fail"


class Enqueuer(Protocol):
    """The part of an app that a task uses."""

    @property
    def engine(self) -> Engine:
        """The database engine, created on first use."""

    def callers_connection(self) -> Any:
        """Return the connection that an enqueue without `connection` uses, or None."""

    @property
    def hooks(self) -> Hooks:
        """The middleware and the listeners."""


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """Everything except the arguments, shared by calls to one task with the same options."""

    job: NewJob
    hooks: Hooks = field(repr=False, compare=False)
    returns: Any
    connection: Any


@dataclass(frozen=True, slots=True)
class BoundCall(Generic[R_co]):
    """A validated call, ready for `app.enqueue_many` or `job.enqueue`. Created by `task.bind`."""

    template: CallTemplate
    args: Json

    @property
    def job(self) -> NewJob:
        """The job to enqueue."""
        return replace(self.template.job, args=self.args)

    def apply_middleware(self) -> NewJob:
        """Return the job after running the enqueue middleware, which doesn't get the job's id."""
        with self.template.hooks.passage() as passage:
            [job] = passage.before([self.job])
        return job


class TaskCall(Generic[P, R]):
    """A task with options for the next enqueue. Created by `task.using`."""

    def __init__(self, app: Enqueuer, definition: Definition, options: CallOptions) -> None:
        self._app = app
        self._definition = definition
        self._options = options
        self._template: CallTemplate | None = None

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue one job. It is durable on return, or once your own transaction commits.

        Args:
            *args: The task's positional arguments, without the job.
            **kwargs: The task's keyword arguments.

        Returns:
            A handle to the new job, or to the job that already holds the key.

        Raises:
            InvalidValue: An argument does not match its annotation, or an option is out of range.
            PayloadError: The arguments are not JSON, or are too large.
            StoreError: The database did not accept the job.
        """
        bound = self.bind(*args, **kwargs)
        connection = self._connection()
        engine = self._app.engine
        with bound.template.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.template.job, [bound.args]))
            sealed = engine.sealing.jobs(jobs) if engine.sealing.has_codec else jobs
            op = engine.store.jobs.enqueue(sealed)
            answers = engine.run(op, connection)
            passage.after(jobs, answers)
        [answer] = answers
        return Handle(engine, answer.id, created=answer.created, returns=bound.template.returns)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async version of `enqueue`.

        Args:
            *args: The task's positional arguments, without the job.
            **kwargs: The task's keyword arguments.

        Returns:
            A handle to the job.
        """
        bound = self.bind(*args, **kwargs)
        connection = self._connection()
        engine = self._app.engine
        with bound.template.hooks.passage() as passage:
            jobs = passage.before(UniformBatch(bound.template.job, [bound.args]))
            sealed = engine.sealing.jobs(jobs) if engine.sealing.has_codec else jobs
            op = engine.store.jobs.enqueue(sealed)
            answers = await engine.arun(op, connection)
            passage.after(jobs, answers)
        [answer] = answers
        return Handle(engine, answer.id, created=answer.created, returns=bound.template.returns)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundCall[R]:
        """Check a call against the signature without enqueueing it.

        Args:
            *args: The task's positional arguments, without the job.
            **kwargs: The task's keyword arguments.

        Returns:
            The call, for `app.enqueue_many` or `job.enqueue`.

        Raises:
            InvalidValue: An argument does not match its annotation, or an option is out of range.
        """
        named = self._definition.parameters.dump(args, kwargs)
        if self._template is None:
            job = new_job(self._definition, self._options, {})
            if "timeout" in self._options and self._options["timeout"] is None:
                # Unlike an omitted value, None overrides the task's time limit.
                job = replace(job, meta={**job.meta, "timeout": None})
            self._template = CallTemplate(
                job,
                self._app.hooks,
                self._definition.parameters.returns,
                self._options.get("connection"),
            )
        return BoundCall(self._template, named)

    def _connection(self) -> Any:
        named = self._options.get("connection")
        return self._app.callers_connection() if named is None else named


class Registered(TaskCall[P, R]):
    """The base of `Task` and `JobTask`."""

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
        """The name stored with each job."""
        return self._definition.name

    @property
    def app(self) -> Enqueuer:
        """The app that registered the task."""
        return self._app

    @property
    def definition(self) -> Definition:
        """The task's validated options. For Tenure's own modules."""
        return self._definition

    def handle(self, job_id: int | str) -> Handle[R]:
        """Return a handle for a job id, without querying the database.

        Args:
            job_id: The job's id, as a number or a string.

        Returns:
            A handle. Its `get()` returns None if the job belongs to another task.

        Raises:
            InvalidValue: `job_id` is not an id.
        """
        known_as = (self.name, *self._definition.aliases)
        return Handle(
            self._app.engine,
            idempotency.job_id(job_id),
            created=False,
            returns=self._definition.parameters.returns,
            tasks=known_as,
        )

    def using(self, **options: Unpack[CallOptions]) -> TaskCall[P, R]:
        """Override options for one call.

        Args:
            queue: Another queue.
            priority: 0 to 9, where 9 is the most urgent.
            delay: Wait this long before the first attempt.
            run_at: The earliest start, as an aware datetime. Cannot be combined with `delay`.
            key: The deduplication key. Until the job ends, enqueueing this task again with the same
                key returns the first job.
            key_for: How long to keep the key after the job ends, or `FOREVER` (default: 0).
            max_attempts: How many times to try the job.
            lease: How long a claim lasts between renewals.
            timeout: How long an attempt may run. None means no limit (default: the task's).
            expires_in: Cancel the job if it hasn't started this long after being enqueued.
            tags: Short strings stored with the job, available as `job.tags`.
            target: Complete the job once it has reported this many distinct items.
            connection: Your open psycopg, asyncpg, SQLAlchemy or Django connection or session. The
                job exists once you commit.

        Returns:
            The task with these options. Call `enqueue`, `aenqueue` or `bind` on it.

        Example::

            from tenure import Tenure

            app = Tenure()

            @app.task
            def remind(name: str) -> str:
                return f"Hello again, {name}"

            first = remind.using(key="ada", delay=60).enqueue(name="Ada")
            again = remind.using(key="ada").enqueue(name="Ada")
            assert again.id == first.id and not again.created
        """
        check_names(options, CallOptions.__optional_keys__)
        return TaskCall(self._app, self._definition, options)


class Task(Registered[P, R], Generic[P, R, C_co]):
    """A registered function. Calling it calls your function and enqueues nothing."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function directly, without a job.

        Args:
            *args: The function's positional arguments.
            **kwargs: The function's keyword arguments.

        Returns:
            The function's own result.
        """
        result: C_co = self._definition.function(*args, **kwargs)
        return result


class JobTask(Registered[P, R], Generic[P, R, C_co, J_contra]):
    """A registered function whose first parameter is the running job."""

    def __call__(self, job: J_contra, /, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Call the function directly with a job of your own.

        Args:
            job: Passed to the function as is.
            *args: The function's other positional arguments.
            **kwargs: The function's keyword arguments.

        Returns:
            The function's own result.
        """
        result: C_co = self._definition.function(job, *args, **kwargs)
        return result


def check_names(given: Mapping[str, object], names: AbstractSet[str]) -> None:
    """Raise TypeError for a keyword that isn't one of these names, as a call would."""
    for name in given:
        if name not in names:
            raise TypeError(f"got an unexpected keyword argument {name!r}")


def new_job(task: Definition, options: EnqueueOptions, args: Json) -> NewJob:
    """Return the job for a call. The call's options override the task's."""
    tags, timeout, run_at = options.get("tags"), options.get("timeout"), options.get("run_at")
    _check(task, options)
    expires_in = _first(_seconds(options.get("expires_in")), task.expires_in)
    delay = _seconds(options.get("delay"))
    if expires_in is not None and delay is not None and delay >= expires_in:
        raise InvalidValue(
            f"delay must be less than expires_in ({expires_in}), got {delay}; expires_in counts "
            "from the enqueue, so the job would never run"
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
    """Return the definition of a task that only another program registers."""

    def unknown() -> None:
        """Stand in for a function that exists only in another program."""

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
    """Return the call's timeout if it has one, otherwise the task's. None means no limit."""
    options = meta or {}
    if "timeout" not in options:
        return task.timeout
    seconds = options["timeout"]
    return None if seconds is None else timedelta(seconds=seconds)


def _check(task: Definition, options: EnqueueOptions) -> None:
    """Check a call's options. The store's rules also check every job."""
    waits = {"timeout": options.get("timeout"), "expires_in": options.get("expires_in")}
    for name, wait in waits.items():
        if wait is not None and duration(wait) <= timedelta(0):
            raise InvalidValue(f"{name} must be positive, got {wait}; write seconds or a timedelta")
    tags, lease = options.get("tags"), options.get("lease")
    if isinstance(tags, str):
        raise InvalidValue(f"tags must be a list, got the text {tags!r}; write tags=[{tags!r}]")
    if lease is not None:
        check_ttl(duration(lease), stop_within=task.stop_within)


def _check_in_time(run_at: datetime | None, expires_in: timedelta | None) -> None:
    """Reject a `run_at` after the job's expiry. The store's rules check its type and time zone."""
    if expires_in is None or not isinstance(run_at, datetime) or run_at.tzinfo is None:
        return
    if run_at - datetime.now(UTC) >= expires_in:
        raise InvalidValue(
            f"run_at must be earlier than expires_in ({expires_in}) from now, got {run_at}; "
            "expires_in counts from the enqueue, so the job would never run"
        )


def _first(value: T | None, default: T) -> T:
    """Return `value`, or `default` for None."""
    return default if value is None else value


@overload
def _seconds(value: None) -> None: ...
@overload
def _seconds(value: Seconds) -> timedelta: ...
def _seconds(value: Seconds | None) -> timedelta | None:
    return None if value is None else duration(value)
