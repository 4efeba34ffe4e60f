"""Databases for tests, and how to point an app at one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tenure import _settings, _wiring
from tenure._local_postgres import PrivatePostgres, find_binaries
from tenure._store.steps import Op, RawSql
from tenure.app import Tenure
from tenure.errors import ConfigError, QueryFailed
from tenure.testing.engines import OverConnection, check_psycopg

if TYPE_CHECKING:
    from tenure._store.engine import Engine


NAMED = "TENURE_TEST_DATABASE_URL"
_PREFIX = "tenure_test_"
_MAY_NOT = "42501"


@contextmanager
def server(run: str) -> Iterator[str]:
    """Yield the URL of a server where tests may create databases.

    The server is taken from `TENURE_TEST_DATABASE_URL`, or from the configured database if its name
    contains "test". If neither exists, it is a private server shared by this run's processes.

    Args:
        run: The test run's id.

    Raises:
        ConfigError: None of these is available.
    """
    if url := os.environ.get(NAMED) or _configured():
        yield url
        return
    if find_binaries() is None:
        raise ConfigError(
            f"no database for tests: {NAMED} is not set, no configured database has 'test' in its "
            f"name, and PostgreSQL is not installed; set {NAMED}=postgresql://user@host/database, "
            "or install PostgreSQL (apt-get install postgresql)"
        )
    directory = Path(tempfile.gettempdir(), f"{_PREFIX}{os.getuid()}_{run}")
    with PrivatePostgres(directory, durable=False) as private:
        yield private.url()


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """Create a database, yield its URL, and drop the database afterward.

    Args:
        server: The server's URL. Its own database is left untouched.
        name: A suffix for the new database's name.
    """
    _do(server, f'CREATE DATABASE "{_PREFIX}{name}"')
    try:
        yield _wiring.beside(server, f"{_PREFIX}{name}")
    finally:
        _do(server, f'DROP DATABASE IF EXISTS "{_PREFIX}{name}" WITH (FORCE)')


def install(url: str, schema: str = "tenure") -> None:
    """Create Tenure's tables if they do not exist.

    Args:
        url: The database URL.
        schema: The schema for the tables (default: `"tenure"`).
    """
    engine = _wiring.engine(url, schema=schema)
    with engine.session() as session:
        session.run(engine.store.schema.migrate())
        session.run(engine.store.maintenance.maintain())


def clear(url: str, schema: str = "tenure") -> None:
    """Delete all rows from Tenure's tables in a test database.

    Args:
        url: The database URL.
        schema: The tables' schema (default: `"tenure"`).

    Raises:
        ConfigError: The database was not created for tests.
    """
    name = _wiring.database_name(url)
    if not name.startswith(_PREFIX):
        raise ConfigError(f"the database's name must start with {_PREFIX}, got {name}")
    engine = _wiring.engine(url, schema=schema)
    with engine.session() as session:
        session.run(engine.store.maintenance.clear())


def _configured() -> str | None:
    try:
        url = _settings.database_url()
    except ConfigError:
        return None
    return url if "test" in _wiring.database_name(url) else None


def _do(server: str, statement: str) -> None:
    def op() -> Op[None]:
        yield RawSql(statement)

    with _wiring.engine(server).session() as session:
        try:
            session.run(op())
        except QueryFailed as error:
            if error.sqlstate != _MAY_NOT:
                raise
            raise ConfigError(
                "tests create databases, and this user is not allowed to; run "
                f"ALTER ROLE … CREATEDB, or set {NAMED} to a URL with another user"
            ) from error


@contextmanager
def use_database(app: Tenure, url: str) -> Iterator[None]:
    """Point the app at another database inside the block.

    Args:
        app: The app.
        url: The database URL.
    """
    engine = _wiring.engine(url, schema=app.schema)
    try:
        with app.with_engine(engine):
            yield
    finally:
        engine.close()


@contextmanager
def use_connection(app: Tenure, connection: Any) -> Iterator[None]:
    """Send everything the app does over one connection inside the block.

    Enqueues, `inline`, `drain`, handlers and assertions all run in the test's open transaction. A
    rollback undoes everything. Workers and other connections see none of it.

    Args:
        app: The app.
        connection: A psycopg connection, sync or async.

    Raises:
        InvalidValue: The connection isn't a psycopg connection.
    """
    check_psycopg(connection)
    is_async = hasattr(connection, "__aenter__")
    over = OverConnection(app.engine, connection, is_async=is_async)
    with app.with_engine(cast("Engine", over)):
        yield
