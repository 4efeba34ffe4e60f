"""Choose the database and the notifier, each imported on first use (psycopg takes 0.1 s)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from tenure._rules.sealing import NOT_SEALING, Codec, Sealing
from tenure._store.engine import Engine, Notifier
from tenure._store.port import Store
from tenure.errors import ConfigError


def engine(
    url: str,
    *,
    schema: str = "tenure",
    pool_size: int = 10,
    redis: str | None = None,
    codec: Codec | None = None,
) -> Engine:
    """Return the engine for a database URL. If a Redis URL is given, wakeups also use Redis."""
    if not url.startswith(("postgresql://", "postgres://")) and "=" not in url:
        # Don't quote a URL without a scheme: it may start with anything, even a password.
        scheme, separator, _ = url.partition("://")
        what = f"{scheme[:40]!r} is not supported" if separator else "it has no scheme"
        raise ConfigError(
            f"the database URL is not valid: {what}; write postgresql://user@host/database"
        )
    with _loading():
        from tenure._store.postgres.engine import PostgresEngine
    notifier = _notifier(redis, schema) if redis else None
    sealing = NOT_SEALING if codec is None else Sealing(codec)
    return PostgresEngine(
        url, schema=schema, pool_size=pool_size, notifier=notifier, sealing=sealing
    )


def _notifier(url: str, schema: str) -> Notifier:
    from tenure._notifier_redis import RedisNotifier

    return RedisNotifier(url, schema=schema)


def script(schema: str, *, since: int, to: int | None) -> str:
    from tenure._store.postgres import schema as postgres_schema

    return postgres_schema.script(schema, since=since, to=to)


def roles(schema: str) -> str:
    from tenure._store.postgres import roles as postgres_roles

    return postgres_roles.script(schema)


def timed_store(schema: str, clock: Callable[[], datetime]) -> Store:
    """Return a store that uses this clock instead of the database's."""
    from tenure._store.postgres.store import PostgresStore

    return PostgresStore(schema, clock=clock)


def database_name(url: str) -> str:
    from tenure._store.postgres import connections

    return connections.database_name(url)


def beside(url: str, database: str) -> str:
    from tenure._store.postgres import connections

    return connections.beside(url, database)


@contextmanager
def _loading() -> Iterator[None]:
    """Explain the ImportError if psycopg can't find libpq."""
    try:
        yield
    except ImportError as error:
        if not any(word in str(error) for word in ("pq wrapper", "libpq", "psycopg")):
            raise
        raise ImportError(
            f"psycopg cannot find libpq: {error}; run: "
            'pip install "tenure[binary]", or install libpq on your system'
        ) from error
