"""Connections that know whether a pooler stands before the server, and do without a session then.

A pooler in transaction mode gives every transaction another server process: what one leaves in
its session (settings, prepared statements, LISTEN) is another's to find. It is told by the
process id, which the pooler made up for its client and the server knows better.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, OperationalError, conninfo
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

from tenure._store.postgres.performing import DEADLINE

RV = TypeVar("RV")
_SECONDS = DEADLINE.total_seconds()
_ASK = "SELECT pg_backend_pid()"
# What our options begin with; before it stand those of the URL.
OUR_OPTIONS = "-c enable_seqscan="
_REFUSED = "unsupported startup parameter"
# Addresses whose pooler takes no options: asked once each, not at every connection.
_without_options: set[tuple[object, ...]] = set()


class Reached(Connection[TupleRow]):
    """A connection that has learned how it was reached."""

    pooled = False
    deadline: float | None = None

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect, without options if a pooler refuses them, and ask who answers."""
        fit = _fit(conninfo)
        try:
            connection = super().connect(fit, **kwargs)
        except OperationalError as error:
            connection = super().connect(_bare(fit, error), **kwargs)
        with _or_closed(connection):
            connection.learn()
        return connection

    def learn(self) -> None:
        """Ask who answers; through a pooler prepare nothing, here and for handlers' SQL."""
        lasting, self.deadline = self.deadline, _SECONDS
        row = self.execute(_ASK).fetchone()
        self.deadline = lasting
        if not self.autocommit:
            self.rollback()
        self.pooled = row != (self.pgconn.backend_pid,)
        if self.pooled:
            self.prepare_threshold = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but past no deadline; what came too late is unknown."""
        if timeout is not None or self.deadline is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.deadline)
        except psycopg.errors._WaitTimeout as error:  # noqa: SLF001 - no public name
            self.pgconn.finish()
            raise psycopg.OperationalError("no answer within the deadline") from error


class AsyncReached(AsyncConnection[TupleRow]):
    """The same in the async world."""

    pooled = False

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect, without options if a pooler refuses them, and ask who answers."""
        fit = _fit(conninfo)
        try:
            connection = await super().connect(fit, **kwargs)
        except OperationalError as error:
            connection = await super().connect(_bare(fit, error), **kwargs)
        with _or_closed(connection):
            await connection.learn()
        return connection

    async def learn(self) -> None:
        """Ask who answers; through a pooler prepare nothing, here and for handlers' SQL."""
        try:
            async with asyncio.timeout(_SECONDS):
                row = await (await self.execute(_ASK)).fetchone()
        except TimeoutError as error:
            raise OperationalError("no answer within the deadline") from error
        if not self.autocommit:
            await self.rollback()
        self.pooled = row != (self.pgconn.backend_pid,)
        if self.pooled:
            self.prepare_threshold = None


@contextmanager
def _or_closed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Leave nothing open that nobody was given."""
    try:
        yield
    except BaseException:
        connection.pgconn.finish()
        raise


def _fit(text: str) -> str:
    """The connection string as it was last found to be taken there."""
    return _stripped(text) if _place(text) in _without_options else text


def _bare(text: str, error: OperationalError) -> str:
    """The connection string without our options, if those were refused; else the error. Several
    may learn it at once."""
    if _REFUSED not in str(error) or OUR_OPTIONS not in text:
        raise error
    _without_options.add(_place(text))
    return _stripped(text)


def _stripped(text: str) -> str:
    given = conninfo.conninfo_to_dict(text)
    callers, _, _ = str(given.get("options") or "").partition(OUR_OPTIONS)
    return conninfo.make_conninfo("", **(given | {"options": callers.strip() or None}))


def _place(text: str) -> tuple[object, ...]:
    given = conninfo.conninfo_to_dict(text)
    return tuple(given.get(name) for name in ("host", "hostaddr", "port", "dbname", "user"))
