"""Join transactions of SQLAlchemy connections and sessions, on the driver's connection."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure._store.engine import AsyncRunner
from tenure._store.steps import Op

T = TypeVar("T")


def sqlalchemy_connection(given: Any) -> Any:
    """Return a Connection's or Session's driver connection, inside its transaction."""
    connection = given
    if hasattr(given, "flush"):
        # Flush the session's pending writes, as SQLAlchemy does before its own statements.
        if given.autoflush:
            given.flush()
        connection = given.connection()
    if not connection.in_transaction():
        # Otherwise the caller's commit() would commit nothing.
        connection.begin()
    return connection.connection.driver_connection


class SqlalchemySession:
    """Runs operations in an AsyncConnection's or AsyncSession's transaction."""

    def __init__(self, given: Any, join: Callable[[Any], AsyncRunner]) -> None:
        self._given = given
        self._join = join

    async def run(self, op: Op[T]) -> T:
        try:
            runner = self._join(await self._driver_connection())
        except BaseException:
            op.close()
            raise
        return await runner.run(op)

    async def _driver_connection(self) -> Any:
        connection = self._given
        if hasattr(connection, "flush"):
            if connection.autoflush:
                await connection.flush()
            connection = await connection.connection()
        if not connection.in_transaction():
            await connection.begin()
        driver: Any = (await connection.get_raw_connection()).driver_connection
        if hasattr(driver, "is_in_transaction") and not driver.is_in_transaction():
            # With asyncpg, the server's transaction begins with SQLAlchemy's first statement.
            await connection.exec_driver_sql("SELECT 1")
        return driver
