"""Pointing an app at a test's database, or at a test's transaction, as long as a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from tenure import _wiring
from tenure.app import Tenure
from tenure.testing.engines import OverConnection, check_psycopg

if TYPE_CHECKING:
    from tenure._store.engine import Engine


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
