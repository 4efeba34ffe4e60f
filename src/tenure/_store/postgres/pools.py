"""Pools of connections for programs that enqueue and for handlers: by process, and by event loop.

What services use is in `service_connection`. A pool is made when first needed, in the process
that needs it: nothing is opened at import, and nothing is shared across a fork.
"""

import asyncio
import os
import select
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from tenure._store.postgres.connections import (
    DEADLINE,
    AsyncDetectingConnection,
    DetectingConnection,
    aconnect,
    callers,
    connect,
    count_hosts,
    own,
)
from tenure._store.postgres.sessions import AsyncSession, Publish, Session
from tenure.errors import Unreachable

_SECONDS = DEADLINE.total_seconds()
_WAIT = 5.0
# A host that is silent takes so long to be passed over.
_SILENCE = 3.0
_IDLE = 300.0


class OwnConnection(DetectingConnection):
    """A connection of our own, in autocommit, with a deadline on each statement."""

    session: Session
    deadline = _SECONDS


class OwnAsyncConnection(AsyncDetectingConnection):
    """The same in the async world; its session keeps the deadline."""

    session: AsyncSession


class Pools:
    """The pools of one database: our own connections, and plain ones for handlers' SQL."""

    def __init__(self, url: str, *, schema: str, size: int, ring: Publish | None = None) -> None:
        self._url = url
        self._schema = schema
        self._ring = ring
        self._hosts = count_hosts(url)
        self.size = size
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._sync: dict[str, ConnectionPool[Any]] = {}
        self._async: dict[asyncio.AbstractEventLoop, dict[str, AsyncConnectionPool[Any]]] = {}

    @contextmanager
    def checkout(self, kind: str = "own") -> Iterator[Any]:
        """A connection that the server has not closed meanwhile: an `OwnConnection`, whose session
        leaves no transaction open, or a `plain` one with the server's settings."""
        pool = self._pool(kind)
        until = monotonic() + self._wait
        try:
            connection = pool.getconn(self._wait)
            while _has_ended(connection):
                connection.close()
                pool.putconn(connection)
                connection = pool.getconn(until - monotonic())
        except (PoolTimeout, PoolClosed):
            connect(self._url).close()
            raise _all_taken(self.size, self._wait) from None
        try:
            yield connection
        finally:
            pool.putconn(connection)

    @asynccontextmanager
    async def acheckout(self, kind: str = "own") -> AsyncIterator[Any]:
        pool = await self._apool(kind)
        until = monotonic() + self._wait
        try:
            connection = await pool.getconn(self._wait)
            while _has_ended(connection):
                await connection.close()
                await pool.putconn(connection)
                connection = await pool.getconn(until - monotonic())
        except (PoolTimeout, PoolClosed):
            await (await aconnect(self._url)).close()
            raise _all_taken(self.size, self._wait) from None
        try:
            yield connection
        finally:
            await pool.putconn(connection)

    @property
    def _wait(self) -> float:
        """How long a connection is waited for: so that all hosts but the last may be silent."""
        return _WAIT + _SILENCE * (self._hosts - 1)

    def _pool(self, kind: str) -> ConnectionPool[Any]:
        with self._lock:
            if self._pid != os.getpid():
                # The parent's connections are the parent's.
                self._pid, self._sync = os.getpid(), {}
            if kind not in self._sync:
                mine = kind == "own"
                self._sync[kind] = ConnectionPool(
                    connection_class=OwnConnection if mine else DetectingConnection,
                    configure=self._prepare if mine else _read_committed,
                    **self._options(kind),
                )
                self._sync[kind].open()
            return self._sync[kind]

    async def _apool(self, kind: str) -> AsyncConnectionPool[Any]:
        self._forget_ended_loops()
        pools = self._async.setdefault(asyncio.get_running_loop(), {})
        if kind not in pools:
            mine = kind == "own"
            pools[kind] = AsyncConnectionPool(
                connection_class=OwnAsyncConnection if mine else AsyncDetectingConnection,
                configure=self._aprepare if mine else _aread_committed,
                **self._options(kind),
            )
            await pools[kind].open()
        return pools[kind]

    def _options(self, kind: str) -> dict[str, Any]:
        """What the pools of both worlds have in common."""
        mine = kind == "own"
        return {
            "conninfo": own(self._url) if mine else callers(self._url, name="tenure job"),
            "kwargs": {"autocommit": mine},
            "min_size": 0,
            "max_size": self.size,
            "timeout": self._wait,
            "max_idle": _IDLE,
            "reconnect_timeout": self._wait,
            "num_workers": 1,
            "name": f"tenure {kind}",
            "open": False,
        }

    def _forget_ended_loops(self) -> None:
        """A loop that ended without aclose can close nothing any more."""
        for loop in [each for each in self._async if each.is_closed()]:
            for pool in self._async.pop(loop, {}).values():
                for connection in pool._pool:  # noqa: SLF001 - its own close needs the loop
                    connection.pgconn.finish()

    def _prepare(self, connection: OwnConnection) -> None:
        connection.session = Session(connection, schema=self._schema, ring=self._ring)

    async def _aprepare(self, connection: OwnAsyncConnection) -> None:
        connection.session = AsyncSession(connection, schema=self._schema, ring=self._ring)

    def close(self) -> None:
        """Close the connections of the sync world."""
        with self._lock:
            pools, self._sync = self._sync, {}
            if self._pid != os.getpid():
                return
        for pool in pools.values():
            pool.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        for pool in self._async.pop(asyncio.get_running_loop(), {}).values():
            await pool.close()


def _all_taken(size: int, wait: float) -> Unreachable:
    """Where the server answers, that is why there was no connection; where not, it told. While it
    comes back, both are true in turn."""
    return Unreachable(
        f"none of the {size} connections of the pool was free within {wait:g} s; if the server "
        "was not away, give Tenure a larger pool_size, or hold them for less long"
    )


def _has_ended(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Whether the server has closed it. Costs no round trip: on an idle connection there is
    nothing to read but the end."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _read_committed(connection: Connection[Any]) -> None:
    connection.isolation_level = IsolationLevel.READ_COMMITTED


async def _aread_committed(connection: AsyncConnection[Any]) -> None:
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
