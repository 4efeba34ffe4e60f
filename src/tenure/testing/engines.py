"""Wrappers around an engine: one that uses a single connection, and one with its own clock."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from tenure import _wiring
from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._store.engine import Engine, Runner
from tenure._store.port import Store
from tenure._store.steps import Op, RawSql
from tenure.errors import InvalidValue

T = TypeVar("T")


class EngineProxy:
    """Forward everything to another engine, except what a subclass overrides."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def store(self) -> Store:
        """The inner engine's operations."""
        return self.inner.store


class ClockedEngine(EngineProxy):
    """The same database, with a different clock."""

    def __init__(self, inner: Engine, clock: Callable[[], datetime]) -> None:
        super().__init__(inner)
        self._store = _wiring.timed_store(inner.schema, clock)

    @property
    def store(self) -> Store:
        """The inner engine's operations, using this engine's clock."""
        return self._store


class OverConnection(EngineProxy):
    """Send everything over the test's connection, inside its open transaction."""

    def __init__(self, inner: Engine, connection: Any, *, is_async: bool) -> None:
        super().__init__(inner)
        self._connection = connection
        self._is_async = is_async

    def run(self, op: Op[T], connection: Any = None) -> T:
        """Run an operation in the test's transaction, or in the caller's."""
        return self.inner.run(op, self._connection if connection is None else connection)

    async def arun(self, op: Op[T], connection: Any = None) -> T:
        """Async version of `run`. A sync connection works too, and blocks the loop."""
        if connection is None and not self._is_async:
            return self.inner.run(op, self._connection)
        return await self.inner.arun(op, self._connection if connection is None else connection)

    @contextmanager
    def session(self) -> Iterator[Runner]:
        """Yield a runner over the test's connection."""
        yield self.inner.on(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Open a savepoint in the test's transaction, for handlers."""
        check_psycopg(self._connection)
        self.run(_begin())
        with self._connection.transaction():
            yield self._connection

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        """Async version of `transaction`."""
        if not self._is_async:
            raise InvalidValue(
                "connection must be async for the transaction of an async def handler; run this "
                "test with use_database instead of use_connection"
            )
        check_psycopg(self._connection)
        await self.arun(_begin())
        async with self._connection.transaction():
            yield self._connection

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002 - see below
        """Return the job immediately, because no other process can see it or end it."""
        return self.run(self.store.jobs.get(job_id))

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002, ASYNC109 - as above
        """Async version of `wait`."""
        return await self.arun(self.store.jobs.get(job_id))

    def service_connection(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to run a worker, whose services need their own connections."""
        raise InvalidValue(
            "a worker cannot see the test's transaction; run the jobs with drain(app), or the "
            "test with use_database"
        )

    def close(self) -> None:
        """Do nothing: the connection belongs to the test."""

    async def aclose(self) -> None:
        """Do nothing: the connection belongs to the test."""


def check_psycopg(connection: Any) -> None:
    """Raise InvalidValue for another driver's connection: `job.transaction()` needs psycopg."""
    kind = type(connection)
    if not hasattr(connection, "pgconn"):
        raise InvalidValue(
            f"connection must be a psycopg connection, got {kind.__module__}.{kind.__qualname__}; "
            "pass the one inside it (Django: connection.connection, SQLAlchemy: "
            "session.connection().connection.driver_connection)"
        )


def _begin() -> Op[None]:
    """Open the transaction with a first statement, so that later ones only create savepoints."""
    yield RawSql("SELECT 1")
