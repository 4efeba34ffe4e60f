"""PostgreSQL as an engine: store, pools, service connections, callers' connections."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, conninfo
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.stats import ListenCheck
from tenure._rules.sealing import NOT_SEALING, Sealing
from tenure._store.engine import AsyncRunner, Engine, Notifier, Runner
from tenure._store.migrations import Migration
from tenure._store.postgres import drivers
from tenure._store.postgres.connections import connect
from tenure._store.postgres.pools import PoolLimits, Pools
from tenure._store.postgres.schema import migrations
from tenure._store.postgres.service_connection import PostgresServiceConnection, check_listen
from tenure._store.postgres.sessions import Publish, Session, is_unconfirmed
from tenure._store.postgres.statements import DEFAULT_SCHEMA
from tenure._store.postgres.store import PostgresStore
from tenure._store.postgres.wait_for_job import wait, wait_async
from tenure._store.steps import Op
from tenure.errors import ConfigError, OutcomeUnknown

T = TypeVar("T")


class PostgresEngine:
    """One PostgreSQL database. `Engine` documents its methods."""

    def __init__(
        self,
        url: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        pool_size: int = 10,
        notifier: Notifier | None = None,
        sealing: Sealing = NOT_SEALING,
    ) -> None:
        _check_url(url)
        self.store = PostgresStore(schema)
        self.url = url
        self.schema = schema
        self.notifier = notifier
        self.sealing = sealing
        self._ring = notifier.publish if notifier else None
        self._pools = Pools(url, schema=schema, size=pool_size, ring=self._ring)
        self._pool = "own"
        # The queues woken in handlers' transactions, by connection; published on commit.
        self._rung_at_commit: dict[int, set[str]] = {}

    @property
    def channel(self) -> str:
        return self.store.jobs.channel

    def run(self, op: Op[T], connection: Any = None) -> T:
        if connection is not None:
            return self.on(connection).run(op)
        with self._pools.checkout(self._pool) as own:
            answer: T = own.session.run(op)
            return answer

    async def arun(self, op: Op[T], connection: Any = None) -> T:
        if connection is not None:
            return await self.aon(connection).run(op)
        async with self._pools.acheckout(self._pool) as own:
            answer: T = await own.session.run(op)
            return answer

    def reserve_pool(self, name: str, *, connections: int, waiting: int) -> "PostgresEngine":
        self._pools.limits[name] = PoolLimits(connections, waiting)
        engine = copy(self)
        engine._pool = name  # noqa: SLF001 - of this class
        return engine

    def limit_waiting(self, waiting: int) -> None:
        self._pools.limits[self._pool] = PoolLimits(self._pools.size, waiting)

    @contextmanager
    def session(self) -> Iterator[Session]:
        with connect(self.url) as connection:
            yield Session(connection, schema=self.schema, ring=self._ring)

    def service_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> PostgresServiceConnection:
        return PostgresServiceConnection(
            self.url, schema=self.schema, name=name, deadline=deadline, ring=self._ring
        )

    def on(self, connection: Any) -> Runner:
        return drivers.session_on(
            connection, schema=self.schema, ring=self._publish_later(connection)
        )

    def aon(self, connection: Any) -> AsyncRunner:
        return drivers.asession_on(
            connection, schema=self.schema, ring=self._publish_later(connection)
        )

    def _publish_later(self, connection: object) -> Publish | None:
        """Collect wakeups for a connection that we commit ourselves. We don't see other commits."""
        woken = self._rung_at_commit.get(id(connection))
        return None if woken is None else woken.update

    @contextmanager
    def _publish(self, connection: object) -> Iterator[None]:
        """Publish wakeups after the commit that ends the block."""
        woken = self._rung_at_commit[id(connection)] = set()
        try:
            yield
        finally:
            del self._rung_at_commit[id(connection)]
        if self._ring and woken:
            self._ring(woken)

    @contextmanager
    def transaction(self) -> Iterator[Connection[TupleRow]]:
        with (
            self._pools.checkout("plain") as connection,
            connection,
            self._publish(connection),
            _confirmed(connection),
        ):
            yield connection
            connection.commit()

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        async with self._pools.acheckout("plain") as connection, connection:
            with self._publish(connection), _confirmed(connection):
                yield connection
                await connection.commit()

    def check_listen(self) -> ListenCheck:
        return check_listen(self.url)

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:
        return wait(self.url, self.store.jobs, job_id, timeout)

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ASYNC109
        return await wait_async(self.url, self.store.jobs, job_id, timeout)

    @property
    def migrations(self) -> Sequence[Migration]:
        return migrations()

    def reserve_connections(self, connections: int) -> None:
        self._pools.reserve(connections)

    def release_connections(self, connections: int) -> None:
        self._pools.reserve(-connections)

    def close(self) -> None:
        self._pools.close()
        if self.notifier is not None:
            self.notifier.close()

    async def aclose(self) -> None:
        await self._pools.aclose()


def _check_url(url: str) -> None:
    """Raise ConfigError for an invalid URL, without libpq's message, which quotes it."""
    try:
        conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ConfigError(
            "the database URL is not valid; write postgresql://user@host:5432/name, with @ / : % "
            "in the password as %40 %2F %3A %25"
        ) from None


@contextmanager
def _confirmed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Raise OutcomeUnknown if the server warns that the standby didn't confirm the commit."""
    warned = False

    def watch(diagnostic: Diagnostic) -> None:
        nonlocal warned
        warned = warned or is_unconfirmed(diagnostic)

    connection.add_notice_handler(watch)
    try:
        yield
    finally:
        connection.remove_notice_handler(watch)
    if warned:
        raise OutcomeUnknown("committed, but not confirmed by the standby")


def _is_an_engine(engine: PostgresEngine) -> Engine:
    return engine
