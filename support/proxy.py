"""A TCP proxy that can fall silent: nothing passes, and nobody is told. Knows no protocol."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

_CHUNK = 65536


class Proxy:
    """Stands between a worker and its database, on a thread of its own.

    While it is cut, connections stay open at both ends, new ones are accepted and hear
    nothing, and an end is not passed on. What was on its way arrives when it is mended, as
    late as that may be.
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._on_loop(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The database's URL by way of this proxy."""
        user = self._target.username or ""
        return urlunsplit(self._target._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    def cut(self) -> None:
        """Let nothing pass from now on, in either direction."""
        self._on_loop(self._set(is_open=False))

    def mend(self) -> None:
        """Let everything pass again, first what was held up."""
        self._on_loop(self._set(is_open=True))

    def forget(self) -> None:
        """Let nothing pass on the connections that there are, ever; new ones are not touched."""
        self._on_loop(self._replace())

    def _on_loop(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _set(self, *, is_open: bool) -> None:
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    async def _replace(self) -> None:
        self._open.clear()
        self._open = asyncio.Event()
        self._open.set()

    async def _start(self) -> None:
        self._open.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = server
        self._port = server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        is_open = self._open
        await is_open.wait()
        try:
            there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(back)
        await asyncio.gather(self._pass(reader, back, is_open), self._pass(there, writer, is_open))
        self._writers -= {writer, back}

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await is_open.wait()
                writer.write(data)
                await writer.drain()
        await is_open.wait()
        writer.close()
