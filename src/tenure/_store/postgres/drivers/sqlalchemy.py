"""Joining the transaction of SQLAlchemy's connections and sessions: what is said goes to the
driver's own connection, and SQLAlchemy is told first that a transaction has begun."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure._store.engine import AsyncRunner
from tenure._store.steps import Op

T = TypeVar("T")


def sqlalchemy_connection(given: Any) -> Any:
    """The driver's connection of a Connection or a Session, inside its transaction."""
    connection = given
    if hasattr(given, "flush"):
        # As before any statement of the session's own: what is written there comes first.
        if given.autoflush:
            given.flush()
        connection = given.connection()
    if not connection.in_transaction():
        # Else its commit() would have nothing to commit.
        connection.begin()
    return connection.connection.driver_connection


class SqlalchemySession:
    """Performs operations inside the transaction of an AsyncConnection or an AsyncSession."""

    def __init__(self, given: Any, join: Callable[[Any], AsyncRunner]) -> None:
        self._given = given
        self._join = join

    async def run(self, op: Op[T]) -> T:
        """Perform an operation and return its answer."""
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
            # Over asyncpg the server's transaction begins with SQLAlchemy's first statement.
            await connection.exec_driver_sql("SELECT 1")
        return driver
