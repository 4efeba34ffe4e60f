"""Join transactions on callers' connections, without importing their drivers."""

import sys
from typing import Any

from psycopg import AsyncConnection, Connection

from tenure._store.engine import AsyncRunner, Runner
from tenure._store.postgres.drivers.asyncpg import AsyncpgSession
from tenure._store.postgres.drivers.django import DjangoSession, django_connection
from tenure._store.postgres.drivers.sqlalchemy import (
    SqlalchemySession,
    sqlalchemy_connection,
)
from tenure._store.postgres.sessions import AsyncSession, Publish, Session
from tenure.errors import InvalidValue

_SYNC = "a connection of psycopg or Django, or a Connection or Session of SQLAlchemy"
_ASYNC = (
    "an AsyncConnection of psycopg, a connection of asyncpg or Django, "
    "or an AsyncConnection or AsyncSession of SQLAlchemy"
)
_IS_ASYNC = "it is async; await the async form (aenqueue, an AsyncJob's complete)"
_IS_SYNC = "it is sync and would block the event loop; use the sync form (enqueue, a Job's)"
_DJANGO = (
    ("django.db.backends.base.base", "BaseDatabaseWrapper"),
    ("django.utils.connection", "ConnectionProxy"),
)
_SQLALCHEMY = (
    ("sqlalchemy.orm", "Session"),
    ("sqlalchemy.orm", "scoped_session"),
    ("sqlalchemy", "Connection"),
)
_ASYNC_SQLALCHEMY = (
    ("sqlalchemy.ext.asyncio", "AsyncSession"),
    ("sqlalchemy.ext.asyncio", "async_scoped_session"),
    ("sqlalchemy.ext.asyncio", "AsyncConnection"),
)
_ASYNCPG = (("asyncpg", "Connection"), ("asyncpg.pool", "PoolConnectionProxy"))
_PSYCOPG2 = (("psycopg2.extensions", "connection"),)


def session_on(connection: Any, *, schema: str, ring: Publish | None = None) -> Runner:
    """Return a runner that joins a caller's transaction. `ring` receives the queues to wake."""
    given = connection
    if _is(connection, _DJANGO):
        connection = django_connection(connection)
    elif _is(connection, _SQLALCHEMY):
        connection = sqlalchemy_connection(connection)
    if isinstance(connection, Connection):
        return Session(connection, schema=schema, own=False, ring=ring)
    if isinstance(given, AsyncConnection) or _is(given, _ASYNCPG + _ASYNC_SQLALCHEMY):
        raise _refusal(given, connection, _IS_ASYNC)
    if given is not connection:
        raise _refusal(given, connection, f"it uses a {_kind(connection)}, not psycopg")
    raise _refusal(given, connection, f"pass {_SYNC}")


def asession_on(connection: Any, *, schema: str, ring: Publish | None = None) -> AsyncRunner:
    """Return a runner that joins the transaction on a caller's async connection."""
    if isinstance(connection, AsyncConnection):
        return AsyncSession(connection, schema=schema, own=False, ring=ring)
    if _is(connection, _ASYNCPG):
        return AsyncpgSession(connection, schema=schema)
    if _is(connection, _ASYNC_SQLALCHEMY):
        return SqlalchemySession(connection, lambda driver: asession_on(driver, schema=schema))
    if _is(connection, _DJANGO):
        return DjangoSession(connection, lambda driver: session_on(driver, schema=schema))
    if isinstance(connection, Connection) or _is(connection, _SQLALCHEMY):
        raise _refusal(connection, connection, _IS_SYNC)
    raise _refusal(connection, connection, f"pass {_ASYNC}")


def _is(connection: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """Return whether an object is an instance of one of these classes, given as module and name."""
    return any(
        isinstance(connection, getattr(sys.modules[module], name))
        for module, name in kinds
        if module in sys.modules
    )


def _refusal(given: object, driver: object, remedy: str) -> InvalidValue:
    if _is(driver, _PSYCOPG2):
        return InvalidValue(
            f"cannot join the transaction of a {_kind(given)} over psycopg2: Tenure needs psycopg "
            '3; pip install "psycopg[binary]" and connect with it (SQLAlchemy: '
            "postgresql+psycopg://…; Django uses it once psycopg2 is not installed)"
        )
    return InvalidValue(f"cannot join the transaction of a {_kind(given)} here: {remedy}")


def _kind(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"
