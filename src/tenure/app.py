"""The `Tenure` app: a program's tasks, and the database that holds their jobs.

This file is longer than 500 lines because its docstrings are the reference for `app`.
"""

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
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Unpack, overload

from tenure import _bulk_enqueue, _wiring, kinds
from tenure._declarations import DeclaredNotices, DeclaredSchedules, require_parentheses
from tenure._hooks.middleware import Hooks
from tenure._model.event import JobEventName, WorkerEventName
from tenure._registry import Registry, require_sequence
from tenure._rules.leasing import read_claim_lease
from tenure._rules.payload import check_key
from tenure._rules.sealing import Codec
from tenure._settings import calling_module, database_url, ordered, resolve
from tenure._store.engine import Engine
from tenure._typing import AJ, A, D, Decorator, E, J, L, M, P, R, T, W
from tenure.config import DEFAULTS, Defaults, TaskOptions, duration
from tenure.errors import InvalidValue
from tenure.handle import Handle
from tenure.kinds.call import WorkCall
from tenure.task import BoundCall, JobTask, Registered, Seconds, Task, check_names

if TYPE_CHECKING:
    from tenure._runtime.embedded import EmbeddedOptions
    from tenure._schedule_spec import DeclaredFields
    from tenure.admin import Admin
    from tenure.kinds.grpc import GrpcCall
    from tenure.kinds.http import HttpCalls
    from tenure.kinds.shell import ShellCall


class Tenure:
    """A program's tasks, and the database that holds their jobs.

    Creating an app opens no connections and reads no configuration. The app does both on first use.
    Omitted arguments come from the environment or from `tenure.toml`.

    Args:
        url: The database URL (default: `TENURE_DATABASE_URL` or `tenure.toml`).
        schema: The schema that holds Tenure's tables (default: `"tenure"`).
        imports: More modules that define tasks. Workers import them on startup.
        pool_size: The maximum number of connections per pool (default: 10).
        listen: Whether workers use `LISTEN` (default: yes, except behind a connection pooler).
        redis: The URL of a Redis server that also carries wakeups. `""` turns it off.
        program: The program that owns the schedules in this code (default: the calling module).
        version: The program's release, such as `"2026.11.15"`. An older release doesn't undo a
            newer one's schedules.
        codec: Encodes a job's data before it is stored and decodes it when it is read, for example
            to encrypt it. See the how-to guide "Encrypt payloads".
        defaults: The built-in values of the lease protocol. Scale them only in test suites.

    Raises:
        InvalidValue: An argument is out of range.

    Example::

        from tenure import Tenure

        app = Tenure()

        @app.task
        def hello(name: str) -> str:
            return f"Hello {name}"

        handle = hello.enqueue(name="Ada")
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
        codec: Codec | None = None,
        defaults: Defaults = DEFAULTS,
    ) -> None:
        self._url = url
        self._schema = schema
        self._pool_size = pool_size
        self._listen = listen
        self._redis = redis
        self._program = program
        self._version = version
        self._codec = codec
        ordered(version)  # Reject an invalid value here, where the user wrote it.
        self._module = calling_module()
        self._engine: Engine | None = None
        self._finding = threading.RLock()
        self.hooks: Hooks = Hooks(at_end=self._aclose)
        self.imports: Sequence[str] = tuple(require_sequence(imports, "imports"))
        self.defaults = defaults
        self.tasks: Registry = Registry(defaults)
        self.declared: DeclaredSchedules = DeclaredSchedules()
        self.notices: DeclaredNotices = DeclaredNotices()

    @property
    def engine(self) -> Engine:
        """The database engine, created on first use. For Tenure's own modules."""
        with self._finding:  # Concurrent threads must share one engine: each has its own pools.
            if self._engine is None:
                self._engine = _wiring.engine(
                    database_url(self._url),
                    schema=self.schema,
                    pool_size=resolve("pool_size", self._pool_size),
                    redis=resolve("redis_url", self._redis),
                    codec=self._codec,
                )
            return self._engine

    @contextmanager
    def with_engine(self, engine: Engine) -> Iterator[None]:
        """Route all operations in the block to another engine, for Tenure's own modules only.

        Args:
            engine: The engine to use.
        """
        before, self._engine = self._engine, engine
        try:
            yield
        finally:
            self._engine = before

    @property
    def schema(self) -> str:
        """The schema that holds Tenure's tables."""
        schema: str = resolve("schema", self._schema)
        return schema

    @property
    def listen(self) -> bool | None:
        """Whether workers use `LISTEN`. None means yes, except behind a connection pooler."""
        listen: bool | None = resolve("listen", self._listen)
        return listen

    @property
    def program(self) -> str:
        """The program that owns this app's schedules."""
        program: str = resolve("program", self._program, built_in=self._module)
        check_key(program, "the program's name")
        return program

    @property
    def version(self) -> Sequence[int]:
        """The program's release as comparable numbers, or `()` if it has no version."""
        return ordered(resolve("version", self._version))

    def close(self) -> None:
        """Deliver pending events for up to 2 s, then close the connections that sync code uses.

        Tenure reopens connections when it needs them.
        """
        self.hooks.listeners.close()
        if self._engine is not None:
            self._engine.close()

    async def aclose(self) -> None:
        """Deliver pending events for up to 2 s, then close this event loop's connections."""
        await self.hooks.listeners.aclose()
        await self._aclose()

    async def _aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()

    @property
    def admin(self) -> "Admin":
        """Operator commands for inspecting and managing jobs, queues, schedules and workers."""
        from tenure.admin import Admin  # noqa: PLC0415 - programs that only enqueue

        return Admin(self.engine)

    @property
    def http(self) -> "HttpCalls":
        """HTTP requests as jobs. A worker started with `--kinds http` sends them."""
        from tenure.kinds.http import HttpCalls  # noqa: PLC0415 - programs that send none

        return HttpCalls(lambda arguments: WorkCall(self, "tenure.http", arguments))

    @property
    def shell(self) -> "ShellCall":
        """Commands as jobs. A worker started with `--kinds shell` runs them."""
        from tenure.kinds.shell import ShellCall  # noqa: PLC0415 - programs that run none

        return ShellCall(lambda arguments: WorkCall(self, "tenure.shell", arguments))

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
        """Register a function as a task.

        A `def` runs in a thread, an `async def` on the event loop. To receive the running job,
        annotate the first parameter with `Job` (`AsyncJob` in an `async def`). Calling the task
        still calls your function and enqueues nothing.

        Args:
            function: Your function, if you write `@app.task` without parentheses.
            name: The name stored with each job (default: module and function).
            aliases: Old names that still refer to this task.
            queue: The queue for its jobs (default: `"default"`).
            priority: 0 to 9, where 9 is the most urgent (default: 5).
            max_attempts: How many times to try a job (default: 3, or the queue's value).
            max_losses: How many times the job's own process may die (default: 3).
            on_loss: `"fail"` ends a job whose attempt was lost or released after it started,
                instead of rerunning it (default: `"retry"`).
            timeout: How long an attempt may run. None means no limit (default: 300 s).
            lease: How long a claim lasts between renewals (default: 30 s, or the queue's value).
            stop_within: How long the handler has to stop before it is killed (default: 2 s).
            backoff: How long to wait after a failure (default: `Backoff()`).
            give_up_on: Exception classes that fail the job without a retry.
            expires_in: Cancel a job that hasn't started this long after being enqueued.
            process: Run each handler in its own process (default: False).
            memory: That process's memory limit, such as `"1GiB"`. Needs `process=True`.

        Returns:
            The task, or a decorator if you pass options.

        Raises:
            InvalidValue: An option is out of range, or another task has this name.

        Example::

            from tenure import Job, Tenure

            app = Tenure()

            @app.task(queue="mail", max_attempts=5, timeout=60)
            def send(job: Job, address: str) -> str:
                return f"attempt {job.attempt} to {address}"

            send.enqueue(address="ada@example.com")
        """
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
        work: WorkCall | None = None,
        **fields: "Unpack[DeclaredFields]",
    ) -> Callable[[T], T]:
        """Enqueue a task on a schedule. Place this decorator above `@app.task`.

        For an HTTP request, a command or a gRPC call, call this method with `work` instead.

        Pass exactly one of a cron expression, `every` or `at`. Workers and schedulers store the
        schedule when they start, and any of them can run it. A tick never creates two jobs.

        Args:
            cron: A five-field cron expression, or a name such as `"@daily"`.
            name: The schedule's name (default: the task's name). Required for a second schedule.
            work: What to enqueue instead of a task, such as `app.http.post(…)`. Needs a name.
            every: The interval between runs, at least 1 s, counted from the Unix epoch.
            at: Run once, at this aware datetime.
            timezone: The cron expression's time zone (default: `"UTC"`).
            args: The task's arguments by name.
            missed: Which missed runs to catch up on: none (`"skip"`), the newest
                (`"latest"`) or all of them (`"all"`) (default: `"latest"`).
            missed_within: How far back to catch up on missed runs (default: 1 day).
            missed_limit: How many missed runs to catch up on, up to 10,000 (default: 100).
            overlap: `"skip"` creates no job until the earlier one has ended (default: `"allow"`).
            jitter: Delay each job by a stable fraction of this duration, up to 1 day (default: 0).

        Returns:
            A decorator that returns the task unchanged.

        Raises:
            InvalidValue: The schedule is invalid, or another one has this name.

        Example::

            from datetime import timedelta

            from tenure import Tenure

            app = Tenure()

            @app.schedule("0 9 * * 1-5", timezone="Europe/Berlin", overlap="skip")
            @app.schedule(every=timedelta(hours=1), name="hourly", args={"short": True})
            @app.task
            def report(short: bool = False) -> str:
                return "short" if short else "full"
        """
        require_parentheses(cron)
        if work is not None:
            self.declared.add_work(work.bind().job, name=name, cron=cron, fields=fields)

        def decorate(task: T) -> T:
            if work is not None:
                raise InvalidValue(
                    "a schedule with work= has no task; write app.schedule(…, work=…) as a call of "
                    "its own"
                )
            self.declared.add(task, app=self, name=name, cron=cron, fields=fields)
            return task

        return decorate

    def notify(
        self,
        event: str,
        *,
        secret: str,
        to: str | None = None,
        queue: str = "*",
        task: str = "*",
        format: str = "standard",  # noqa: A002 - the name that users know
        group_for: Seconds | None = None,
        threshold: Seconds | None = None,
        name: str | None = None,
    ) -> None:
        """Notify a receiver of an event with a signed webhook, at least once.

        Workers and schedulers store the rule when they start. A worker with the kind `http` sends
        the notices.

        Args:
            event: `"failed"`, `"queue_behind"`, `"schedule_missed"` or `"worker_lost"`.
            secret: The name of the secret that signs notices. Workers have its value. For
                `"slack"` it is the webhook's URL, for `"pagerduty"` the routing key.
            to: The receiver's URL (default for `"pagerduty"`: its Events API). Omit it for
                `"slack"`.
            queue: Only this queue, or a prefix such as `mail*` (default: all).
            task: Only this task, or a prefix (default: all).
            format: `"standard"`, `"slack"` or `"pagerduty"` (default: `"standard"`).
            group_for: Make at most one notice per cause in this time (default: 5 min).
            threshold: How long the oldest job of a queue has waited, for `"queue_behind"`.
            name: The rule's name (default: the program, the event and the secret).

        Raises:
            InvalidValue: A value is invalid, or another rule has this name.

        Example::

            from tenure import Tenure

            app = Tenure()
            app.notify("failed", queue="mail*", to="https://hooks.example.com/x", secret="ops")
        """
        from tenure._rules.notices import new_rule  # noqa: PLC0415 - programs without rules

        rule = new_rule(
            f"{event}:{secret}" if name is None else name,
            event,
            secret=secret,
            url=to,
            queue=queue,
            task=task,
            format=format,
            group_for=group_for,
            threshold=threshold,
        )
        self.notices.add(rule, is_named=name is not None)

    def callers_connection(self) -> Any:
        """Return the connection that an enqueue without `connection` uses.

        A framework integration overrides this method to join the framework's transaction.

        Returns:
            A connection, or None to use Tenure's own.
        """
        return None

    @property
    def grpc(self) -> "GrpcCall":
        """Unary gRPC calls as jobs. A worker started with `--kinds grpc` makes them."""
        from tenure.kinds.grpc import GrpcCall  # noqa: PLC0415 - a kind is loaded on first use

        return GrpcCall(partial(WorkCall, self, "tenure.grpc"))

    def load_tasks(self) -> None:
        """Import the modules in `imports`. Each of a worker's processes calls this."""
        for name in self.imports:
            importlib.import_module(name)

    def serve_kinds(self, names: Iterable[str]) -> None:
        """Register these kinds of work, so that a worker runs their jobs. Workers call this.

        Args:
            names: The kinds, such as `["http"]`.

        Raises:
            ConfigError: A kind doesn't exist, its extra isn't installed, or its configuration is
                invalid.
        """
        for definition in kinds.definitions(names):
            self.tasks.add(definition)

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
        """Register middleware: a generator function with one `yield`.

        The first one registered is the outermost. Middleware can raise, but it can't change a
        result or hide an error.

        Args:
            around: `"enqueue"` wraps each enqueue and receives a `Draft`. `"run"` wraps each
                handler and receives the `Job` or `AsyncJob`.
            only: Wrap only `"def"` or only `"async"` handlers (default: both).

        Returns:
            A decorator that returns the function unchanged.

        Raises:
            InvalidValue: The function isn't valid middleware, or an argument is invalid.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.hooks.add(around, function, only=only)
            return function

        if callable(around):
            raise InvalidValue(
                f'around must be "enqueue" or "run", got {around!r}; write '
                '@app.middleware("enqueue") or @app.middleware("run")'
            )
        return decorate

    @overload
    def on(self, *events: JobEventName) -> Callable[[L], L]: ...
    @overload
    def on(self, *events: WorkerEventName) -> Callable[[W], W]: ...
    def on(self, *events: str) -> Any:
        """Register an event listener.

        Each event is delivered after the fact and at most once. Listeners run one at a time on
        their own thread. If work must not be lost, do it in the job's transaction or in a task.

        Args:
            *events: Names of job or worker events.

        Returns:
            A decorator for a `def` or `async def` that takes the event.

        Raises:
            InvalidValue: An event does not exist.
        """
        self.hooks.listeners.check(events)

        def decorate(listener: Callable[[Any], object]) -> Callable[[Any], object]:
            self.hooks.listeners.add(events, listener)
            return listener

        return decorate

    def enqueue_many(
        self, calls: Iterable[BoundCall[R]], *, connection: Any = None
    ) -> list[Handle[R]]:
        """Enqueue many calls in one transaction: all of them, or none.

        Args:
            calls: Calls made with `task.bind(…)`, for one or more tasks.
            connection: Your open connection or session. The jobs exist once you commit.

        Returns:
            One handle for each call, in order.

        Raises:
            InvalidValue: A call is not a `bind()` result, or has its own connection.
        """
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            return engine.run(_bulk_enqueue.enqueue_all(engine, calls, passage), connection)

    async def aenqueue_many(
        self, calls: Iterable[BoundCall[R]], *, connection: Any = None
    ) -> list[Handle[R]]:
        """Async version of `enqueue_many`.

        Args:
            calls: Calls made with `task.bind(…)`.
            connection: Your open async connection or session.

        Returns:
            One handle for each call, in order.
        """
        engine = self.engine
        connection = self.callers_connection() if connection is None else connection
        with self.hooks.passage(many=True) as passage:
            return await engine.arun(_bulk_enqueue.enqueue_all(engine, calls, passage), connection)

    @asynccontextmanager
    async def run(
        self,
        *,
        queues: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        grace: Seconds | None = None,
        name: str | None = None,
        schedules: bool | None = None,
    ) -> AsyncIterator[None]:
        """Run a worker on this event loop until the block ends, then shut it down gracefully.

        There is no parent process, so Tenure can't kill a stuck handler. The handler may keep
        running after its lease ends. `process=True` has no effect. `tenure worker` doesn't have
        these limitations.

        Args:
            queues: The queues to serve (default: the tasks' queues, and `"default"`).
            kinds: The kinds of work to run besides your tasks, such as `["http"]` (default: none).
            concurrency: How many jobs run concurrently (default: 10).
            lease: The lease of each job that this worker claims (default: the job's, task's,
                queue's or installation's).
            grace: How long running jobs have to finish when the block ends (default: 25 s).
            name: The worker's name, as shown in lists (default: host and pid).
            schedules: Whether to run schedules too (default: True).

        Raises:
            InvalidValue: `lease` is too short to be renewed in time, or longer than a day.
            SchemaError: The database schema is incompatible with this release.
        """
        from tenure._runtime.embedded import inside  # noqa: PLC0415 - programs that only enqueue

        async with inside(
            self,
            self._embedded_options(queues, kinds, concurrency, lease, grace, name, schedules),
        ):
            yield

    @contextmanager
    def run_in_thread(
        self,
        *,
        queues: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        grace: Seconds | None = None,
        name: str | None = None,
        schedules: bool | None = None,
    ) -> Iterator[None]:
        """Run a worker on its own thread until the block ends, then shut it down gracefully.

        For sync programs, such as a Flask app or a script. The thread has its own event loop.
        `async def` handlers run on that loop, and `def` handlers in more threads. One program can
        run several workers, each in its own block. The limits of `run` apply here too.

        Leaving the block takes up to `grace`. Tenure installs no signal handlers. In a process
        that forks, enter the block after the fork. A forked child doesn't run the worker.

        Args:
            queues: The queues to serve (default: the tasks' queues, and `"default"`).
            kinds: The kinds of work to run besides your tasks, such as `["http"]` (default: none).
            concurrency: How many jobs run concurrently (default: 10).
            lease: The lease of each job that this worker claims (default: the job's, task's,
                queue's or installation's).
            grace: How long running jobs have to finish when the block ends (default: 25 s).
            name: The worker's name, as shown in lists (default: host and pid).
            schedules: Whether to run schedules too (default: True).

        Raises:
            InvalidValue: `lease` is too short to be renewed in time, or longer than a day.
            SchemaError: The database schema is incompatible with this release.
            Unreachable: The database doesn't respond.

        Example::

            from tenure import Tenure

            app = Tenure()

            @app.task
            def hello(name: str) -> str:
                return f"Hello {name}"

            with app.run_in_thread(concurrency=2):
                print(hello.enqueue(name="Ada").wait(60).result)
        """
        from tenure._runtime.embedded import inside_thread  # noqa: PLC0415 - as in run

        with inside_thread(
            self,
            self._embedded_options(queues, kinds, concurrency, lease, grace, name, schedules),
        ):
            yield

    def _embedded_options(
        self,
        queues: Sequence[str] | None,
        kinds: Sequence[str] | None,
        concurrency: int | None,
        lease: Seconds | None,
        grace: Seconds | None,
        name: str | None,
        schedules: bool | None,
    ) -> "EmbeddedOptions":
        from tenure._runtime.embedded import EmbeddedOptions  # noqa: PLC0415 - as in run

        named = None if kinds is None else require_sequence(kinds, "kinds")
        self.serve_kinds(resolve("kinds", named) or ())
        limit = resolve("grace", grace, built_in=self.defaults.grace)
        return EmbeddedOptions(
            queues=resolve(
                "queues", None if queues is None else require_sequence(queues, "queues")
            ),
            slots=resolve("concurrency", concurrency),
            lease=read_claim_lease(resolve("lease", lease), defaults=self.defaults),
            grace=duration(limit).total_seconds(),
            name=resolve("name", name),
            schedules=resolve("schedules", schedules),
        )
