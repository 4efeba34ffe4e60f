"""`Tenure`: the tasks of one program and the database they are enqueued into."""

import importlib
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from tenure import _wiring
from tenure._hooks.hooks import Hooks
from tenure._hooks.passage import Draft, Passage
from tenure._model.event import JobEvent, JobEventName, WorkerEvent, WorkerEventName
from tenure._model.job import DEFAULT_PRIORITY, Enqueued
from tenure._store.engine import Engine, aperform, perform
from tenure._store.port import Op, atomically
from tenure.config import DEFAULTS, Backoff, Defaults, duration
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.job import AsyncJob, Job
from tenure.registry import UNSET, Registry, Unset, several
from tenure.sources import database_url, setting
from tenure.task import Bound, JobTask, Registered, Seconds, Task

if TYPE_CHECKING:
    from tenure.admin import Admin, Schedules

P = ParamSpec("P")
R = TypeVar("R")
# Bound, and not the class itself: a first parameter that takes any object takes no handle.
J = TypeVar("J", bound=Job)
AJ = TypeVar("AJ", bound=AsyncJob)
E = TypeVar("E", bound=Callable[[Draft], Iterator[None]])
M = TypeVar(
    "M",
    bound=Callable[[Job | AsyncJob], Iterator[None]] | Callable[[AsyncJob], AsyncIterator[None]],
)
D = TypeVar("D", bound=Callable[[Job], Iterator[None]])
A = TypeVar(
    "A", bound=Callable[[AsyncJob], Iterator[None]] | Callable[[AsyncJob], AsyncIterator[None]]
)
L = TypeVar("L", bound=Callable[[JobEvent], object])
W = TypeVar("W", bound=Callable[[WorkerEvent], object])
_BATCH = 1000


class Decorator(Protocol):
    """What `@app.task(…)` makes of a function; by its first parameter and its kind."""

    # A plain function and a coroutine function overlap only where the first parameter or the
    # result is Any or object; then the earlier form is as good as the later.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[AJ, P], Coroutine[Any, Any, R]], /
    ) -> JobTask[P, R, Coroutine[Any, Any, R], AJ]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[J, P], R], /) -> JobTask[P, R, R, J]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...


class Tenure:
    """The tasks of one program and the database they are enqueued into.

    Opens and reads nothing until something is enqueued or asked. What is not given is found in
    the environment or in tenure.toml, else it is built in: docs/reference/settings.md. `imports`
    are modules with more tasks, which a worker loads at its start. `redis` is the URL of a Redis
    that carries wakeups too. Workers LISTEN, unless a pooler stands before the server;
    `listen=True` has them do so through it, where its pools are by session, `listen=False` not
    at all.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        schema: str | None = None,
        imports: Sequence[str] = (),
        pool_size: int | None = None,
        listen: bool | None = None,
        redis: str | None = None,
        defaults: Defaults = DEFAULTS,
    ) -> None:
        self._url = url
        self._schema = schema
        self._pool_size = pool_size
        self._redis = redis
        self._engine: Engine | None = None
        self._finding = threading.RLock()
        self.imports: Sequence[str] = tuple(several(imports, "imports"))
        self._listen = listen
        self.defaults = defaults
        self.tasks: Registry = Registry(defaults)
        self.hooks: Hooks = Hooks(at_end=self._aclose)

    @property
    def engine(self) -> Engine:
        """The database; found when first asked for."""
        with self._finding:  # Threads that ask at once share one: each has pools of its own.
            if self._engine is None:
                self._engine = _wiring.engine(
                    database_url(self._url),
                    schema=self.schema,
                    pool_size=setting("pool_size", self._pool_size),
                    redis=setting("redis_url", self._redis),
                )
            return self._engine

    @contextmanager
    def with_engine(self, engine: Engine) -> Iterator[None]:
        """Have everything go to this engine as long as the block lasts."""
        before, self._engine = self._engine, engine
        try:
            yield
        finally:
            self._engine = before

    @property
    def schema(self) -> str:
        """The schema that everything of Tenure's is in."""
        found: str = setting("schema", self._schema)
        return found

    @property
    def listen(self) -> bool | None:
        """Whether workers hear of new jobs by LISTEN; None: unless a pooler is in between."""
        found: bool | None = setting("listen", self._listen)
        return found

    @property
    def admin(self) -> "Admin":
        """What an operator can see and do."""
        from tenure.admin import Admin  # noqa: PLC0415 - programs that only enqueue

        return Admin(self.engine)

    @property
    def schedules(self) -> "Schedules":
        """What an operator can see of schedules, and do to them."""
        return self.admin.schedules

    @overload
    def task(  # type: ignore[overload-overlap]  # As in Decorator.
        self, function: Callable[Concatenate[AJ, P], Coroutine[Any, Any, R]], /
    ) -> JobTask[P, R, Coroutine[Any, Any, R], AJ]: ...
    @overload
    def task(self, function: Callable[Concatenate[J, P], R], /) -> JobTask[P, R, R, J]: ...
    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = DEFAULT_PRIORITY,
        max_attempts: int | None = None,
        max_losses: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        lease: Seconds | None = None,
        stop_within: Seconds | None = None,
        backoff: Backoff | None = None,
        give_up_on: tuple[type[BaseException], ...] = (),
        expires_in: Seconds | None = None,
        process: bool = False,
    ) -> Decorator: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = DEFAULT_PRIORITY,
        max_attempts: int | None = None,
        max_losses: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        lease: Seconds | None = None,
        stop_within: Seconds | None = None,
        backoff: Backoff | None = None,
        give_up_on: tuple[type[BaseException], ...] = (),
        expires_in: Seconds | None = None,
        process: bool = False,
    ) -> Any:
        """Register a `def` or an `async def` as a task; the job's handle, where it is wanted, is
        the first parameter. `timeout=None` must be written to have none."""

        said = {
            "queue": queue,
            "priority": priority,
            "max_attempts": max_attempts,
            "max_losses": max_losses,
            "backoff": backoff,
            "give_up_on": give_up_on,
            "expires_in": None if expires_in is None else duration(expires_in),
            "process": process,
        }

        def decorate(function: Callable[..., Any]) -> Registered[..., Any]:
            definition = self.tasks.define(
                function,
                name=name,
                aliases=aliases,
                timeout=timeout,
                lease=lease,
                stop_within=stop_within,
                said=said,
            )
            if definition.takes_job:
                return JobTask(self, definition)
            return Task(self, definition)

        return decorate if function is None else decorate(function)

    def callers_connection(self) -> Any:
        """The connection whose transaction an enqueue joins when it names none; None for one of
        our own. An integration overrides it where the framework keeps the connection itself."""
        return None

    def load_tasks(self) -> None:
        """Load the modules with tasks. A worker calls it at its start, in each of its processes."""
        for name in self.imports:
            importlib.import_module(name)

    @overload
    def middleware(self, around: Literal["enqueue"], /) -> Callable[[E], E]: ...
    @overload
    def middleware(self, around: Literal["run"], /) -> Callable[[M], M]: ...
    @overload
    def middleware(
        self, around: Literal["run"], /, *, only: Literal["def"]
    ) -> Callable[[D], D]: ...
    @overload
    def middleware(
        self, around: Literal["run"], /, *, only: Literal["async"]
    ) -> Callable[[A], A]: ...
    def middleware(
        self, around: Literal["enqueue", "run"], /, *, only: Literal["def", "async"] | None = None
    ) -> Any:
        """Register a function with one `yield`, where what it goes around happens: an enqueue,
        for which it is passed the `Draft`, or a handler, for which it is passed the handle. The
        first registered is the outermost. `only` says for which handlers it is."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.hooks.add(around, function, only=only)
            return function

        if callable(around):
            raise InvalidValue(
                'middleware says what it goes around: write @app.middleware("enqueue") or '
                '@app.middleware("run")'
            )
        return decorate

    @overload
    def on(self, *events: JobEventName) -> Callable[[L], L]: ...
    @overload
    def on(self, *events: WorkerEventName) -> Callable[[W], W]: ...
    def on(self, *events: str) -> Any:
        """Register a listener, a `def` or an `async def`, for these events. It is told after the
        fact, at most once, by the process that saw to it; what must not be missed belongs into
        the job's transaction, or into a task."""
        self.hooks.listeners.check(events)

        def decorate(listener: Callable[[Any], object]) -> Callable[[Any], object]:
            self.hooks.listeners.add(events, listener)
            return listener

        return decorate

    def enqueue_many(self, calls: Iterable[Bound[R]], *, connection: Any = None) -> list[Handle[R]]:
        """Enqueue calls (`task.bind(…)`) in one transaction, yours if a connection is given: all
        of them or none."""
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            op, bound = _enqueue_all(engine, calls, passage)
            answers = perform(engine, op, connection)
        return _handles(engine, bound, answers)

    async def aenqueue_many(
        self, calls: Iterable[Bound[R]], *, connection: Any = None
    ) -> list[Handle[R]]:
        """The same in the async world."""
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            op, bound = _enqueue_all(engine, calls, passage)
            answers = await aperform(engine, op, connection)
        return _handles(engine, bound, answers)

    @asynccontextmanager
    async def run(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        grace: Seconds | None = None,
        name: str | None = None,
    ) -> AsyncIterator[None]:
        """Work on this event loop as long as the block lasts, beside whatever else runs there.

        There is no parent process here: a handler that cannot be cancelled is not ended, and
        may go on after its lease. `tenure worker` has one.
        """
        from tenure.worker.inside import inside  # noqa: PLC0415 - programs that only enqueue

        limit = setting("grace", grace, built_in=self.defaults.grace)
        async with inside(
            self,
            queues=setting("queues", None if queues is None else several(queues, "queues")),
            slots=setting("concurrency", concurrency),
            grace=duration(limit).total_seconds(),
            name=setting("name", name),
        ):
            yield

    def close(self) -> None:
        """Close the connections of the sync world; they are opened again when needed. What
        listeners are yet to hear is told first, for a moment."""
        self.hooks.listeners.close()
        if self._engine is not None:
            self._engine.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; they are opened again when needed. What
        listeners are yet to hear is told first, for a moment."""
        await self.hooks.listeners.aclose()
        await self._aclose()

    async def _aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()


def _enqueue_all(
    engine: Engine, calls: Iterable[Bound[R]], passage: Passage
) -> tuple[Op[list[Enqueued]], list[Bound[R]]]:
    """One operation that enqueues them in batches, and the calls as they were read."""
    bound: list[Bound[R]] = []

    def batches() -> Op[list[Enqueued]]:
        answers: list[Enqueued] = []
        for batch in _batched(calls):
            bound.extend(batch)
            jobs = passage.admit([call.job for call in batch])
            stored = yield from engine.store.enqueue(jobs)
            passage.stored(jobs, stored)
            answers += stored
        return answers

    return atomically(batches()), bound


def _batched(calls: Iterable[Bound[R]]) -> Iterator[list[Bound[R]]]:
    rest = iter(calls)
    while batch := list(itertools.islice(rest, _BATCH)):
        for call in batch:
            if not isinstance(call, Bound):
                raise InvalidValue(f"{call!r} is no call; write task.bind(…)")
            if call.connection is not None:
                raise InvalidValue("give the connection to enqueue_many, not to its calls")
        yield batch


def _handles(
    engine: Engine, bound: Sequence[Bound[R]], answers: Sequence[Enqueued]
) -> list[Handle[R]]:
    return [
        Handle(engine, answer.id, created=answer.created, returns=call.returns)
        for call, answer in zip(bound, answers, strict=True)
    ]
