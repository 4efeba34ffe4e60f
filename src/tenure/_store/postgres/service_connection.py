"""A connection that reconnects, LISTEN over that connection, and a check that LISTEN works."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import set_json_loads

from tenure._log import Log
from tenure._model.ids import Json
from tenure._model.stats import ListenCheck
from tenure._store.postgres.connections import DEADLINE, aconnect, addresses, connect
from tenure._store.postgres.sessions import AsyncSession, Publish
from tenure._store.steps import Op
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from tenure._store.postgres.connections import AsyncDetectingConnection


T = TypeVar("T")
log = Log("tenure")
_JSON = json.JSONDecoder()
_SIGN_OF_LIFE = 5.0
_LOOK_AGAIN = 60.0
_UNHEARD = "%s: not using LISTEN behind a pooler; workers poll, or get wakeups from Redis"


def _read_json(data: str | bytes) -> Json:
    """Decode a jsonb value.

    Such a value never starts with a space, so skip the check that `json.loads` makes.
    """
    text = data if isinstance(data, str) else str(data, "utf-8")
    value, _ = _JSON.raw_decode(text)
    return value


class PostgresServiceConnection:
    """A connection for one service, or for a few services that take turns."""

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        name: str,
        deadline: timedelta | None,
        ring: Publish | None = None,
    ) -> None:
        self._url = url
        self._schema = schema
        self._name = name
        self._ring = ring
        self._connection: AsyncDetectingConnection | None = None
        self._session: AsyncSession | None = None
        self._lock = asyncio.Lock()
        self._closes = 0
        self.set_deadline(deadline or DEADLINE)

    def set_deadline(self, deadline: timedelta) -> None:
        self._deadline: timedelta = deadline
        # The timeout per address. A service with a short deadline retries before libpq's timeout.
        self._connecting: float = min(3.0, max(1.0, 2 * deadline.total_seconds()))
        if self._session is not None:
            self._session.set_deadline(deadline)

    async def run(self, op: Op[T]) -> T:
        async with self._lock:
            session = await self._opened()
            return await session.run(op)

    async def open(self) -> None:
        async with self._lock:
            await self._opened()

    async def _opened(self) -> AsyncSession:
        if self._session is None or self._connection is None or self._connection.closed:
            return await self._open()
        return self._session

    async def _open(self) -> AsyncSession:
        await self.close()
        closes = self._closes
        connection = await self._reached()
        if closes != self._closes:
            # asyncio may lose a cancel that arrives just as the connection is established.
            await connection.close()
            raise Unreachable(f"{self._name}: closed while connecting")
        self._connection = connection
        set_json_loads(_read_json, self._connection)
        self._session = AsyncSession(
            self._connection, schema=self._schema, deadline=self._deadline, ring=self._ring
        )
        return self._session

    async def _reached(self) -> "AsyncDetectingConnection":
        """Connect to the first address that responds. Each address has its own timeout."""
        failures: list[Unreachable] = []
        for address in await addresses(self._url, within=self._connecting):
            try:
                async with asyncio.timeout(self._connecting):
                    return await aconnect(address, name=self._name)
            except TimeoutError as error:
                silent = Unreachable(f"{self._name}: no connection within {self._connecting:g} s")
                silent.__cause__ = error
                failures.append(silent)
            except Unreachable as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise Unreachable("; ".join(map(str, failures))) from failures[-1]

    async def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """Yield the notifications on a channel, and "" as a heartbeat.

        Behind a pooler, yield nothing unless `anyway` is set, because other clients of the shared
        session would receive the notifications too.
        """
        connection = await self._connected()
        if connection.behind_pooler and not anyway:
            log.warning(_UNHEARD, self._name)
            while connection.behind_pooler:
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

    async def _connected(self) -> "AsyncDetectingConnection":
        await self._open()
        if self._connection is None:
            raise AssertionError("just opened")
        return self._connection

    async def close(self) -> None:
        self._closes += 1
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            await connection.close()


_PATIENCE = 3.0


def check_listen(url: str) -> ListenCheck:
    """Check that LISTEN works, using two connections.

    Skip the check behind a pooler, where the LISTEN would stay in a shared session.
    """
    channel = f"tenure_doctor_{uuid4().hex}"
    with (
        connect(url, name="tenure doctor") as listener,
        connect(url, name="tenure doctor") as sender,
    ):
        if listener.behind_pooler:
            return ListenCheck(behind_pooler=True)
        try:
            listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            notified_at = monotonic()
            sender.execute("SELECT pg_notify(%s, '')", [channel])
            if any(True for _ in listener.notifies(timeout=_PATIENCE, stop_after=1)):
                return ListenCheck(lag=timedelta(seconds=monotonic() - notified_at))
            return ListenCheck()
        except psycopg.Error as error:
            raise Unreachable(f"the connection broke while listening: {error}") from error
