"""Engines around another engine: everything over one connection, or by a clock of one's own."""

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
    """An engine that does what the one inside it does, where it does not say otherwise."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def store(self) -> Store:
        return self.inner.store


class ClockedEngine(EngineProxy):
    """The same database by another clock."""

    def __init__(self, inner: Engine, clock: Callable[[], datetime]) -> None:
        super().__init__(inner)
        self._store = _wiring.timed_store(inner.schema, clock)

    @property
    def store(self) -> Store:
        return self._store


class OverConnection(EngineProxy):
    """Everything over one connection of the test's own, inside the transaction it has open."""

    def __init__(self, inner: Engine, connection: Any, *, is_async: bool) -> None:
        super().__init__(inner)
        self._connection = connection
        self._is_async = is_async

    def run(self, op: Op[T], connection: Any = None) -> T:
        """Run an operation in the test's transaction, or in a caller's."""
        return self.inner.run(op, self._connection if connection is None else connection)

    async def arun(self, op: Op[T], connection: Any = None) -> T:
        """The same in the async world; over a sync connection too, which blocks the loop."""
        if connection is None and not self._is_async:
            return self.inner.run(op, self._connection)
        return await self.inner.arun(op, self._connection if connection is None else connection)

    @contextmanager
    def session(self) -> Iterator[Runner]:
        yield self.inner.on(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A part of the test's transaction, for handlers."""
        check_psycopg(self._connection)
        self.run(_begin())
        with self._connection.transaction():
            yield self._connection

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        if not self._is_async:
            raise InvalidValue(
                "an async def handler has its transaction over an async connection, and the "
                "test's is not; run this test with use_database instead of use_connection"
            )
        check_psycopg(self._connection)
        await self.arun(_begin())
        async with self._connection.transaction():
            yield self._connection

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002 - see below
        """The job as it is: nobody else sees it, so nobody else ends it."""
        return self.run(self.store.jobs.get(job_id))

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ARG002, ASYNC109 - as above
        return await self.arun(self.store.jobs.get(job_id))

    def service_connection(self, *_: Any, **__: Any) -> NoReturn:
        """No worker: its services have connections of their own."""
        raise InvalidValue(
            "a worker does not see what is inside the test's transaction; run the jobs with "
            "drain(app), or the test with use_database"
        )

    def close(self) -> None:
        """The connection is the test's."""

    async def aclose(self) -> None:
        """The connection is the test's."""


def check_psycopg(connection: Any) -> None:
    """InvalidValue for another driver's connection: a handler's transaction is psycopg's."""
    kind = type(connection)
    if not hasattr(connection, "pgconn"):
        raise InvalidValue(
            f"everything cannot go over a {kind.__module__}.{kind.__qualname__}; give the "
            "psycopg connection beneath it (Django: connection.connection; SQLAlchemy: "
            "session.connection().connection.driver_connection)"
        )


def _begin() -> Op[None]:
    """Have a transaction begun where a first statement begins it: what follows is a part of it,
    and does not commit it."""
    yield RawSql("SELECT 1")
