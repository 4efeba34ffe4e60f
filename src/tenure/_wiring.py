"""Which database stands behind the port, and what rings beside it. The only place to name them.

Each is loaded when it is first needed: psycopg takes a tenth of a second of a core, and a program
that declares its tasks may never need it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from tenure._store.engine import Engine, Notifier
from tenure._store.port import Store
from tenure.errors import ConfigError


def engine(
    url: str, *, schema: str = "tenure", pool_size: int = 10, redis: str | None = None
) -> Engine:
    """The engine for a database's URL, with wakeups by a Redis too if its URL is given."""
    if not url.startswith(("postgresql://", "postgres://")) and "=" not in url:
        # Without a scheme, the text may begin with anything, a password too.
        scheme, found, _ = url.partition("://")
        what = f"{scheme[:40]!r} is no database Tenure works with" if found else "it has no scheme"
        raise ConfigError(
            f"the database's URL is not right: {what}; give one like postgresql://user@host/database"
        )
    with _loading():
        from tenure._store.postgres.engine import PostgresEngine
    bell = _notifier(redis, schema) if redis else None
    return PostgresEngine(url, schema=schema, pool_size=pool_size, notifier=bell)


def _notifier(url: str, schema: str) -> Notifier:
    from tenure._notifier_redis import RedisNotifier

    return RedisNotifier(url, schema=schema)


def script(schema: str, *, since: int, to: int | None) -> str:
    """The migrations as text, worked out without a database."""
    from tenure._store.postgres import schema as postgres_schema

    return postgres_schema.script(schema, since=since, to=to)


def roles(schema: str) -> str:
    """The statements that make the database's roles, worked out without a database."""
    from tenure._store.postgres import roles as postgres_roles

    return postgres_roles.script(schema)


def timed_store(schema: str, clock: Callable[[], datetime]) -> Store:
    """A store whose time is told by this clock, and not by the database's."""
    from tenure._store.postgres.store import PostgresStore

    return PostgresStore(schema, clock=clock)


def database_name(url: str) -> str:
    """The name of the database that a URL leads to; empty if it says none."""
    from tenure._store.postgres import connections

    return connections.database_name(url)


def beside(url: str, database: str) -> str:
    """The URL of another database on the same server."""
    from tenure._store.postgres import connections

    return connections.beside(url, database)


@contextmanager
def _loading() -> Iterator[None]:
    """ImportError with what to do where there is no libpq that psycopg could use."""
    try:
        yield
    except ImportError as error:
        if not any(word in str(error) for word in ("pq wrapper", "libpq", "psycopg")):
            raise
        raise ImportError(
            f"psycopg cannot be loaded, it finds no libpq: {error}; install it with its own: "
            'pip install "tenure[binary]"; or the libpq of your system'
        ) from error
