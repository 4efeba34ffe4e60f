"""Servers that are almost PostgreSQL: a front that answers as a proxy or another product does."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
# What RDS Proxy answers to a client that sends options.
RDS_PROXY = "Feature not supported: RDS Proxy currently doesn’t support command-line options."


class Front:
    """A listener before a server. It refuses options with `refusal`, and reports `statuses` in
    place of the server's own parameters."""

    def __init__(
        self, url: str, *, refusal: str | None = None, statuses: Mapping[str, str] | None = None
    ) -> None:
        parts = urlsplit(url)
        self._server = parts.hostname or "127.0.0.1", parts.port or 5432
        self._refusal = refusal
        self._statuses = dict(statuses or {})
        self._parts = parts
        self._port = 0
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.refused = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """The server's URL by way of the front."""
        user = f"{self._parts.username}@" if self._parts.username else ""
        return self._parts._replace(netloc=f"{user}127.0.0.1:{self._port}").geturl()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = listener.sockets[0].getsockname()[1]
        self._started.set()
        async with listener:
            await self._stop.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._pass(reader, writer)
        finally:
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            rest = await reader.readexactly(length - 4)
            (code,) = struct.unpack("!I", rest[:4])
            if code not in (_SSL, _GSS):
                break
            writer.write(b"N")
        if code != _CANCEL and b"\0options\0" in rest and self._refusal is not None:
            self.refused += 1
            fields = b"SFATAL\0VFATAL\0C0A000\0M" + self._refusal.encode() + b"\0\0"
            writer.write(b"E" + struct.pack("!I", 4 + len(fields)) + fields)
            await writer.drain()
            return
        inner, outer = await asyncio.open_connection(*self._server)
        try:
            outer.write(struct.pack("!I", length) + rest)
            await asyncio.gather(self._copy(reader, outer), self._answer(inner, writer))
        finally:
            outer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass the server's messages on, up to the first ReadyForQuery one by one."""
        while True:
            kind = await reader.readexactly(1)
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            rest = await reader.readexactly(length - 4)
            if kind == b"Z":
                for name, value in self._statuses.items():
                    field = f"{name}\0{value}\0".encode()
                    writer.write(b"S" + struct.pack("!I", 4 + len(field)) + field)
            writer.write(kind + struct.pack("!I", length) + rest)
            if kind in b"ZE":
                break
        await self._copy(reader, writer)

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()
