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
    """The URL of a server on which databases may be made: the one that is named, the one that is
    configured if its database is one for tests, or a private one that all of this run share."""
    if url := os.environ.get(NAMED) or _configured():
        yield url
        return
    if find_binaries() is None:
        raise ConfigError(
            f"there is no database for tests: {NAMED} is not set, no database with 'test' in its "
            f"name is configured, and no PostgreSQL server is installed here; set {NAMED}="
            "postgresql://user@host/database, or install one (apt-get install postgresql)"
        )
    directory = Path(tempfile.gettempdir(), f"{_PREFIX}{os.getuid()}_{run}")
    with PrivatePostgres(directory, durable=False) as private:
        yield private.url()


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """The URL of a fresh database, dropped at the end. Nothing is done in the database that the
    server's own URL leads to."""
    _do(server, f'CREATE DATABASE "{_PREFIX}{name}"')
    try:
        yield _wiring.beside(server, f"{_PREFIX}{name}")
    finally:
        _do(server, f'DROP DATABASE IF EXISTS "{_PREFIX}{name}" WITH (FORCE)')


def install(url: str, schema: str = "tenure") -> None:
    """Make the tables of this release, unless they are there."""
    engine = _wiring.engine(url, schema=schema)
    with engine.session() as session:
        session.run(engine.store.schema.migrate())
        session.run(engine.store.maintenance.maintain())


def clear(url: str, schema: str = "tenure") -> None:
    """Empty the tables of Tenure in one of these databases."""
    if not _wiring.database_name(url).startswith(_PREFIX):
        raise ConfigError("only a database that was made for tests is emptied")
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
                f"tests make databases of their own, and this user may not; run "
                f"ALTER ROLE … CREATEDB, or name another in {NAMED}"
            ) from error


@contextmanager
def use_database(app: Tenure, url: str) -> Iterator[None]:
    """Have the app enqueue into, and be asked of, this database."""
    engine = _wiring.engine(url, schema=app.schema)
    try:
        with app.with_engine(engine):
            yield
    finally:
        engine.close()


@contextmanager
def use_connection(app: Tenure, connection: Any) -> Iterator[None]:
    """Have everything of the app go over this psycopg connection, in the transaction that it has
    open, so that the test's rollback takes it back: enqueue, inline, drain, what handlers do
    with their handle, and what is asserted. Workers and other connections see none of it.
    """
    check_psycopg(connection)
    is_async = hasattr(connection, "__aenter__")
    over = OverConnection(app.engine, connection, is_async=is_async)
    with app.with_engine(cast("Engine", over)):
        yield
