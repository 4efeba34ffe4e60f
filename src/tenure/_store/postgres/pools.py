"""Connection pools for each process and event loop.

Pools are created on first use and are never shared across a fork.
"""

import asyncio
import os
import select
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any, NamedTuple

from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg_pool import (
    AsyncConnectionPool,
    ConnectionPool,
    PoolClosed,
    PoolTimeout,
    TooManyRequests,
)

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
from tenure.errors import Overloaded, Unreachable

_SECONDS = DEADLINE.total_seconds()
_WAIT = 5.0
# How long before we give up on a silent host.
_SILENCE = 3.0
_IDLE = 300.0


class OwnConnection(DetectingConnection):
    """One of our own connections, in autocommit, with a deadline for each statement."""

    session: Session
    deadline = _SECONDS


class OwnAsyncConnection(AsyncDetectingConnection):
    """The async form; its session keeps the deadline."""

    session: AsyncSession


class PoolLimits(NamedTuple):
    """A pool's size, and how many operations may wait for a connection. 0 means no limit."""

    connections: int
    waiting: int


class Pools:
    """One database's pools: one or more for our own connections, and one of plain connections for
    handlers' SQL.
    """

    def __init__(self, url: str, *, schema: str, size: int, ring: Publish | None = None) -> None:
        self._url = url
        self._schema = schema
        self._ring = ring
        self._hosts = count_hosts(url)
        self.size = size
        self._reserved = 0
        self.limits: dict[str, PoolLimits] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._sync: dict[str, ConnectionPool[Any]] = {}
        self._async: dict[asyncio.AbstractEventLoop, dict[str, AsyncConnectionPool[Any]]] = {}

    @contextmanager
    def checkout(self, kind: str = "own") -> Iterator[Any]:
        """Check out a connection that the server hasn't closed, either our own or a `plain` one."""
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
            raise _all_taken(pool.max_size, self._wait) from None
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
        except TooManyRequests:
            raise Overloaded("too many operations wait for a connection; try again later") from None
        except (PoolTimeout, PoolClosed):
            await (await aconnect(self._url)).close()
            raise _all_taken(pool.max_size, self._wait) from None
        try:
            yield connection
        finally:
            await pool.putconn(connection)

    def reserve(self, connections: int) -> None:
        with self._lock:  # Workers on other threads start and stop too.
            self._reserved += connections

    @property
    def _most(self) -> int:
        """Return how many connections a pool without limits of its own may have."""
        return max(self.size, self._reserved)

    @property
    def _wait(self) -> float:
        """Return how long to wait for a connection.

        With several hosts, all but the last may time out first.
        """
        return _WAIT + _SILENCE * (self._hosts - 1)

    def _pool(self, kind: str) -> ConnectionPool[Any]:
        with self._lock:
            if self._pid != os.getpid():
                # The parent's connections stay with the parent.
                self._pid, self._sync = os.getpid(), {}
            if kind not in self._sync:
                mine = kind != "plain"
                self._sync[kind] = ConnectionPool(
                    connection_class=OwnConnection if mine else DetectingConnection,
                    configure=self._prepare if mine else _read_committed,
                    **self._options(kind),
                )
                self._sync[kind].open()
            pool = self._sync[kind]
            if self._is_too_small(kind, pool):
                pool.resize(0, self._most)
            return pool

    async def _apool(self, kind: str) -> AsyncConnectionPool[Any]:
        self._forget_ended_loops()
        pools = self._async.setdefault(asyncio.get_running_loop(), {})
        if kind not in pools:
            mine = kind != "plain"
            pools[kind] = AsyncConnectionPool(
                connection_class=OwnAsyncConnection if mine else AsyncDetectingConnection,
                configure=self._aprepare if mine else _aread_committed,
                **self._options(kind),
            )
            await pools[kind].open()
        pool = pools[kind]
        if self._is_too_small(kind, pool):
            await pool.resize(0, self._most)
        return pool

    def _is_too_small(
        self, kind: str, pool: ConnectionPool[Any] | AsyncConnectionPool[Any]
    ) -> bool:
        """Return whether a worker has started since this pool was created."""
        return kind not in self.limits and pool.max_size < self._most

    def _options(self, kind: str) -> dict[str, Any]:
        """Return the options that sync and async pools share."""
        mine = kind != "plain"
        limits = self.limits.get(kind, PoolLimits(self._most, 0))
        return {
            "conninfo": own(self._url) if mine else callers(self._url, name="tenure job"),
            "kwargs": {"autocommit": mine},
            "min_size": 0,
            "max_size": limits.connections,
            "max_waiting": limits.waiting,
            "timeout": self._wait,
            "max_idle": _IDLE,
            "reconnect_timeout": self._wait,
            "num_workers": 1,
            "name": f"tenure {kind}",
            "open": False,
        }

    def _forget_ended_loops(self) -> None:
        """Drop the pools of closed loops.

        If aclose wasn't called, all we can still do is close their sockets.
        """
        # A copy, because other threads with loops of their own add theirs.
        for loop in [each for each in list(self._async) if each.is_closed()]:
            for pool in self._async.pop(loop, {}).values():
                for connection in pool._pool:  # noqa: SLF001 - its own close needs the loop
                    connection.pgconn.finish()

    def _prepare(self, connection: OwnConnection) -> None:
        connection.session = Session(connection, schema=self._schema, ring=self._ring)

    async def _aprepare(self, connection: OwnAsyncConnection) -> None:
        connection.session = AsyncSession(connection, schema=self._schema, ring=self._ring)

    def close(self) -> None:
        """Close the sync connections."""
        with self._lock:
            pools, self._sync = self._sync, {}
            if self._pid != os.getpid():
                return
        for pool in pools.values():
            pool.close()

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        for pool in self._async.pop(asyncio.get_running_loop(), {}).values():
            await pool.close()


def _all_taken(size: int, wait: float) -> Unreachable:
    """Return the error for an exhausted pool.

    The pool is really exhausted, because connecting would have raised if the server were down.
    """
    return Unreachable(
        f"none of the {size} pool connections was free within {wait:g} s; if the server "
        "was not down, raise pool_size, or hold connections for less time"
    )


def _has_ended(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Return whether the server has closed the connection. An idle one can read only EOF."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _read_committed(connection: Connection[Any]) -> None:
    connection.isolation_level = IsolationLevel.READ_COMMITTED


async def _aread_committed(connection: AsyncConnection[Any]) -> None:
    await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
