"""PostgreSQL as an engine: its store, its pools, the links of services, callers' connections."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, conninfo
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.stats import ListenCheck
from tenure._store.engine import AsyncRunner, Engine, Notifier, Runner
from tenure._store.migrations import Migration
from tenure._store.postgres import drivers
from tenure._store.postgres.connections import connect
from tenure._store.postgres.pools import Pools
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
    """One PostgreSQL database."""

    def __init__(
        self,
        url: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        pool_size: int = 10,
        notifier: Notifier | None = None,
    ) -> None:
        _check_url(url)
        self.store = PostgresStore(schema)
        self.url = url
        self.schema = schema
        self.notifier = notifier
        self._ring = notifier.publish if notifier else None
        self._pools = Pools(url, schema=schema, size=pool_size, ring=self._ring)
        # By connection, what was enqueued in handlers' transactions: rung for at their commit.
        self._rung_at_commit: dict[int, set[str]] = {}

    @property
    def channel(self) -> str:
        """The channel of wakeups."""
        return self.store.channel

    def run(self, op: Op[T]) -> T:
        """Perform an operation on a connection of our own."""
        with self._pools.own() as connection:
            return connection.session.run(op)

    async def arun(self, op: Op[T]) -> T:
        """The same in the async world."""
        async with self._pools.aown() as connection:
            return await connection.session.run(op)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """One connection, made now and closed at the end, that waits as long as it takes."""
        with connect(self.url) as connection:
            yield Session(connection, schema=self.schema, ring=self._ring)

    def service_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> PostgresServiceConnection:
        """A connection for one service, with a deadline on each statement."""
        return PostgresServiceConnection(
            self.url, schema=self.schema, name=name, deadline=deadline, ring=self._ring
        )

    def on(self, connection: Any) -> Runner:
        """A caller's sync connection, whose transaction is joined."""
        return drivers.session_on(
            connection, schema=self.schema, ring=self._publish_later(connection)
        )

    def aon(self, connection: Any) -> AsyncRunner:
        """A caller's async connection, whose transaction is joined."""
        return drivers.asession_on(
            connection, schema=self.schema, ring=self._publish_later(connection)
        )

    def _publish_later(self, connection: object) -> Publish | None:
        """Of a connection that is ours to commit, until then; of another, the commit is not seen:
        its workers hear of it by PostgreSQL alone, or poll."""
        woken = self._rung_at_commit.get(id(connection))
        return None if woken is None else woken.update

    @contextmanager
    def _publish(self, connection: object) -> Iterator[None]:
        """Ring after the commit that ends the block for what was enqueued within."""
        woken = self._rung_at_commit[id(connection)] = set()
        try:
            yield
        finally:
            del self._rung_at_commit[id(connection)]
        if self._ring and woken:
            self._ring(woken)

    @contextmanager
    def transaction(self) -> Iterator[Connection[TupleRow]]:
        """A connection with plain settings, inside a READ COMMITTED transaction, for handlers."""
        with self._pools.plain() as connection, self._publish(connection), _confirmed(connection):
            yield connection
            connection.commit()

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """The same in the async world."""
        async with self._pools.aplain() as connection:
            with self._publish(connection), _confirmed(connection):
                yield connection
                await connection.commit()

    def check_listen(self) -> ListenCheck:
        """Whether what one connection notifies is heard by another."""
        return check_listen(self.url)

    def wait(self, job_id: JobId, timeout: float | None) -> JobRow | None:
        """The job once it has ended, or as it is when the time is up; None if there is none."""
        return wait(self.url, self.store, job_id, timeout)

    async def wait_async(self, job_id: JobId, timeout: float | None) -> JobRow | None:  # noqa: ASYNC109
        """The same in the async world."""
        return await wait_async(self.url, self.store, job_id, timeout)

    @property
    def migrations(self) -> Sequence[Migration]:
        """The migrations of this release, in order."""
        return migrations()

    def version(self) -> Op[tuple[int, int | None]]:
        """The schema's version, 0 if there is none, and the newest breaking one."""
        return self.store.version()

    def migrate(self, *, to: int | None = None) -> Op[Sequence[str]]:
        """Bring the schema to a version, up or down. Over a `session` only: it may take long."""
        return self.store.migrate(to=to)

    def reserve_connections(self, connections: int) -> None:
        """Let pools grow to so many connections: every handler may need one."""
        self._pools.size = max(self._pools.size, connections)

    def check_schema(self) -> Op[None]:
        """Refuse a schema that this release cannot work with."""
        return self.store.check_schema()

    def close(self) -> None:
        """Close the connections of the sync world."""
        self._pools.close()
        if self.notifier is not None:
            self.notifier.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._pools.aclose()


def _check_url(url: str) -> None:
    """ConfigError for a URL that libpq cannot read; without libpq's words, which quote it."""
    try:
        conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ConfigError(
            "the database's URL cannot be read; write it like postgresql://user@host:5432/name, "
            "and signs like @ / : % in its password as %40 %2F %3A %25"
        ) from None


@contextmanager
def _confirmed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """OutcomeUnknown if the server says of the commit that its standby did not confirm it."""
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
    """Checked by the type checker."""
    return engine
