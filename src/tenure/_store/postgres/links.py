"""A connection for one service: made when first needed, and made anew after it broke."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import psycopg
from psycopg import sql
from psycopg.types.json import set_json_loads

from tenure._model.ids import Json
from tenure._store.port import Op
from tenure._store.postgres.connecting import aconnect
from tenure._store.postgres.performing import DEADLINE
from tenure._store.postgres.sessions import AsyncSession, Ring
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from tenure._store.postgres.reached import AsyncReached

T = TypeVar("T")
log = logging.getLogger("tenure")
_JSON = json.JSONDecoder()
_SIGN_OF_LIFE = 5.0
_LOOK_AGAIN = 60.0
_UNHEARD = (
    "%s: a pooler stands before the server, so LISTEN is not used; workers poll, "
    "or hear of jobs by Redis"
)


def _read_json(data: str | bytes) -> Json:
    """The value of a jsonb: UTF-8 without a space before it, which `json.loads` would look for."""
    text = data if isinstance(data, str) else str(data, "utf-8")
    value, _ = _JSON.raw_decode(text)
    return value


class PostgresLink:
    """A connection for one service or a few: operations take their turn."""

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        name: str,
        deadline: timedelta | None,
        ring: Ring | None = None,
    ) -> None:
        self._url = url
        self._schema = schema
        self._name = name
        self._ring = ring
        self._deadline = deadline or DEADLINE
        # Who is in a hurry tries again sooner than libpq's timeout would let it.
        self._connecting = min(3.0, max(1.0, 2 * self._deadline.total_seconds()))
        self._connection: AsyncReached | None = None
        self._session: AsyncSession | None = None
        self._lock = asyncio.Lock()

    async def run(self, op: Op[T]) -> T:
        """Perform an operation; the connection is made first if there is none."""
        async with self._lock:
            session = await self._opened()
            return await session.run(op)

    async def open(self) -> None:
        """Make the connection now, if there is none."""
        async with self._lock:
            await self._opened()

    async def _opened(self) -> AsyncSession:
        if self._session is None or self._connection is None or self._connection.closed:
            return await self._open()
        return self._session

    async def _open(self) -> AsyncSession:
        await self.close()
        try:
            async with asyncio.timeout(self._connecting):
                self._connection = await aconnect(self._url, name=self._name)
        except TimeoutError as error:
            raise Unreachable(f"{self._name}: no connection in {self._connecting:g} s") from error
        set_json_loads(_read_json, self._connection)
        self._session = AsyncSession(
            self._connection, schema=self._schema, deadline=self._deadline, ring=self._ring
        )
        return self._session

    async def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """What arrives on a channel, and now and then an empty text as a sign of life.

        A link that was cut without a word shows at the next sign, by the deadline. Through a
        pooler nothing is listened for, unless `anyway`: a LISTEN left in a session that others
        are handed would reach them, and not us.
        """
        connection = await self._connected()
        if connection.pooled and not anyway:
            log.warning(_UNHEARD, self._name)
            while connection.pooled:
                await self.close()
                await asyncio.sleep(_LOOK_AGAIN)
                connection = await self._connected()
        try:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            while True:
                yield ""
                async for notify in connection.notifies(timeout=_SIGN_OF_LIFE):
                    yield notify.payload
                await AsyncSession(connection, own=False, deadline=self._deadline).ping()
        except psycopg.Error as error:
            raise Unreachable(f"the connection of {self._name} broke: {error}") from error

    async def _connected(self) -> "AsyncReached":
        await self._open()
        if self._connection is None:
            raise AssertionError("just opened")
        return self._connection

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            await connection.close()
