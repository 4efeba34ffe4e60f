"""`Tenure`: the tasks of one program and the database they are enqueued into."""

import importlib
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Unpack, overload

from tenure import _bulk_enqueue, _wiring
from tenure._declarations import DeclaredSchedules, require_parentheses
from tenure._hooks.middleware import Hooks
from tenure._model.event import JobEventName, WorkerEventName
from tenure._registry import Registry, require_sequence
from tenure._rules.payload import check_key
from tenure._settings import calling_module, database_url, ordered, resolve
from tenure._store.engine import Engine
from tenure._typing import AJ, A, D, Decorator, E, J, L, M, P, R, T, W
from tenure.config import DEFAULTS, Defaults, TaskOptions, duration
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.task import BoundCall, JobTask, Registered, Seconds, Task, check_names

if TYPE_CHECKING:
    from tenure._schedule_spec import DeclaredFields
    from tenure.admin import Admin


class Tenure:
    """The tasks of one program and the database they are enqueued into.

    Opens and reads nothing until something is enqueued or asked. What is not given is found in
    the environment or in tenure.toml, else it is built in: docs/reference/settings.md. `imports`
    are modules with more tasks, which a worker loads at its start. `redis` is the URL of a Redis
    that carries wakeups too. Workers LISTEN, unless a pooler stands before the server;
    `listen=True` has them do so through it, where its pools are by session, `listen=False` not
    at all. `program` and `version` say whose code declares schedules, and which release of it: a
    newer one's declarations are not undone by an older one. Without, it is this module's, and no
    release is newer than another.
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
        program: str | None = None,
        version: str | int | None = None,
        defaults: Defaults = DEFAULTS,
    ) -> None:
        self._url = url
        self._schema = schema
        self._pool_size = pool_size
        self._listen = listen
        self._redis = redis
        self._program = program
        self._version = version
        ordered(version)  # Refused where it is written.
        self._module = calling_module()
        self._engine: Engine | None = None
        self._finding = threading.RLock()
        self.hooks: Hooks = Hooks(at_end=self._aclose)
        self.imports: Sequence[str] = tuple(require_sequence(imports, "imports"))
        self.defaults = defaults
        self.tasks: Registry = Registry(defaults)
        self.declared: DeclaredSchedules = DeclaredSchedules()

    @property
    def engine(self) -> Engine:
        """The database; found when first asked for."""
        with self._finding:  # Threads that ask at once share one: each has pools of its own.
            if self._engine is None:
                self._engine = _wiring.engine(
                    database_url(self._url),
                    schema=self.schema,
                    pool_size=resolve("pool_size", self._pool_size),
                    redis=resolve("redis_url", self._redis),
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
        found: str = resolve("schema", self._schema)
        return found

    @property
    def listen(self) -> bool | None:
        """Whether workers hear of new jobs by LISTEN; None: unless a pooler is in between."""
        found: bool | None = resolve("listen", self._listen)
        return found

    @property
    def program(self) -> str:
        """The program whose code declares this app's schedules."""
        found: str = resolve("program", self._program, built_in=self._module)
        check_key(found, "the program's name")
        return found

    @property
    def version(self) -> Sequence[int]:
        """Which release of the program this is, as numbers that can be compared; () if not said."""
        return ordered(resolve("version", self._version))

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

    @property
    def admin(self) -> "Admin":
        """What an operator can see and do."""
        from tenure.admin import Admin  # noqa: PLC0415 - programs that only enqueue

        return Admin(self.engine)

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
    def task(self, /, **options: Unpack[TaskOptions]) -> Decorator: ...
    def task(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]
    ) -> Any:
        """Register a `def` or an `async def` as a task; the job's handle, where it is wanted, is
        the first parameter. `timeout=None` must be written to have none. `on_loss="fail"` ends a
        job whose attempt had begun and was lost or given back, instead of running it again.
        `memory` limits what the process of a `process=True` task may take, as in "1GiB"."""

        check_names(options, TaskOptions.__optional_keys__)

        def decorate(function: Callable[..., Any]) -> Registered[..., Any]:
            definition = self.tasks.define(function, options)
            if definition.takes_job:
                return JobTask(self, definition)
            return Task(self, definition)

        return decorate if function is None else decorate(function)

    def schedule(
        self,
        cron: str | None = None,
        /,
        *,
        name: str | None = None,
        **fields: "Unpack[DeclaredFields]",
    ) -> Callable[[T], T]:
        """Have a task enqueued by the clock: above `@app.task`, with a cron expression, which is
        read in the time zone (default: UTC), or with `every` or `at`.

        A task's second schedule needs a `name`. Of missed ticks, `missed` makes jobs of none
        ("skip"), the last ("latest", the default) or "all": the last `missed_limit` (default: 100)
        within `missed_within` (default: a day). `overlap="skip"` makes no job while the last one
        runs. Jobs are due up to `jitter` after their tick (default: 0).
        """
        require_parentheses(cron)

        def decorate(task: T) -> T:
            self.declared.add(task, app=self, name=name, cron=cron, fields=fields)
            return task

        return decorate

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

    def enqueue_many(
        self, calls: Iterable[BoundCall[R]], *, connection: Any = None
    ) -> list[Handle[R]]:
        """Enqueue calls (`task.bind(…)`) in one transaction, yours if a connection is given: all
        of them or none."""
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            return engine.run(_bulk_enqueue.enqueue_all(engine, calls, passage), connection)

    async def aenqueue_many(
        self, calls: Iterable[BoundCall[R]], *, connection: Any = None
    ) -> list[Handle[R]]:
        """The same in the async world."""
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            return await engine.arun(_bulk_enqueue.enqueue_all(engine, calls, passage), connection)

    @asynccontextmanager
    async def run(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        grace: Seconds | None = None,
        name: str | None = None,
        schedules: bool | None = None,
    ) -> AsyncIterator[None]:
        """Work on this event loop as long as the block lasts, beside whatever else runs there;
        fire schedules too, unless told not to.

        There is no parent process here: a handler that cannot be cancelled is not ended, and
        may go on after its lease. `tenure worker` has one.
        """
        from tenure._runtime.embedded import inside  # noqa: PLC0415 - programs that only enqueue

        limit = resolve("grace", grace, built_in=self.defaults.grace)
        async with inside(
            self,
            queues=resolve(
                "queues", None if queues is None else require_sequence(queues, "queues")
            ),
            slots=resolve("concurrency", concurrency),
            grace=duration(limit).total_seconds(),
            name=resolve("name", name),
            schedules=resolve("schedules", schedules),
        ):
            yield
