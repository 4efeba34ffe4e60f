"""A store on a fresh database, with a clock that is set by hand and connections with names."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import psycopg

from tenure._model.ids import WorkerId
from tenure._model.job import PRIORITIES
from tenure._model.queue import Lane
from tenure._store.postgres.connections import aconnect, connect
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure._store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from psycopg import AsyncConnection

    from tenure._store.steps import Op

T = TypeVar("T")
SECOND = timedelta(seconds=1)
A = WorkerId(UUID(int=0xA))
B = WorkerId(UUID(int=0xB))


class HandClock:
    """The time that statements are told, moved by hand. Begins a second ahead of the real time,
    so that nothing seems to have happened before the server started."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0) + SECOND

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> datetime:
        self.now += by
        return self.now


class Party(AsyncSession):
    """One connection that takes part in a test, known to the server by its name."""

    def __init__(self, connection: AsyncConnection[Any], name: str) -> None:
        super().__init__(connection)
        self.connection = connection
        self.name = name

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A caller's transaction on this connection; committed at the end, rolled back on error."""
        async with self.connection.transaction():
            yield AsyncSession(self.connection, own=False)


class Database:
    """A database of its own for one test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = HandClock()
        self.store = PostgresStore(clock=self.clock)
        self.real = PostgresStore()
        self._open: list[AsyncConnection[Any]] = []

    async def party(self, name: str, **settings: str) -> Party:
        """One more connection, made as the store makes its own."""
        connection = await aconnect(self.url, name=name, **settings)
        self._open.append(connection)
        return Party(connection, name)

    async def caller(self, name: str) -> Party:
        """One more connection, as a user of the library would have it."""
        connection = await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, application_name=name
        )
        self._open.append(connection)
        return Party(connection, name)

    async def run(self, op: Op[T]) -> T:
        """Perform one operation on a connection that is kept for this."""
        if not self._open:
            await self.party("main")
        return await AsyncSession(self._open[0]).run(op)

    async def fetch(self, query: str, *args: object) -> list[dict[str, Any]]:
        """What a plain query answers, for looking at tables from outside."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = psycopg.AsyncRawCursor(connection, row_factory=psycopg.rows.dict_row)
            await cursor.execute(query.encode(), args or None)
            return await cursor.fetchall() if cursor.description else []

    async def until_gone(self, name: str, *, within: float = 10.0) -> None:
        """Return once the server has ended this connection, and let go of its locks."""
        async with asyncio.timeout(within):
            while True:
                rows = await self.fetch(
                    "SELECT FROM pg_stat_activity WHERE application_name = $1", name
                )
                if not rows:
                    return
                await asyncio.sleep(0.005)

    async def until_blocked(self, *names: str, within: float = 10.0) -> None:
        """Return once the server says that these connections wait for a lock."""
        async with asyncio.timeout(within):
            while True:
                rows = await self.fetch(
                    "SELECT application_name FROM pg_stat_activity "
                    "WHERE wait_event_type = 'Lock' AND application_name = ANY ($1)",
                    list(names),
                )
                if {row["application_name"] for row in rows} == set(names):
                    return
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()


def install(url: str) -> None:
    """Prepare a template: the schema of this release and its partitions."""
    with connect(url) as connection:
        Session(connection).run(PostgresStore().install())


def lanes(*queues: str) -> list[Lane]:
    """All lanes of these queues in order, without floors."""
    return [Lane(queue, priority) for priority in PRIORITIES for queue in queues]


__all__ = ["SECOND", "A", "B", "Database", "HandClock", "Party", "install", "lanes"]
