"""A thread with its own event loop for services, and the connections that live on that loop.

Responses to claims arrive here. If they arrived on the handlers' loop, a handler that blocks the
loop would leave them unread in the socket, and nothing would renew the claimed leases (rule 7).
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from tenure._services.base import Service, Supervisor, log
from tenure._store.engine import ServiceConnection
from tenure._store.steps import Op
from tenure.errors import StoreError, Unreachable

_LAST_WORDS = 2.0
_STOP_WITHIN = 10.0
_LOOK = 0.01


class ServiceThread:
    def __init__(self, make: Callable[[], Sequence[Service]], *, name: str = "service") -> None:
        self._make = make
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._stop: asyncio.Event | None = None
        self._last_words: Callable[[], Awaitable[None]] | None = None
        self._links: list[ServiceConnection] = []
        self._thread = threading.Thread(target=self._main, name=f"tenure-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception:  # noqa: BLE001 - logged
            # Without renewals, the board's deadlines end this process.
            log.exception("the %s thread died", self._name)
        finally:
            self._ready.set()
            self._ended.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_report)
        self._stop = asyncio.Event()
        try:
            supervisor = Supervisor(self._make())
            supervisor.start()
            self._ready.set()
            await self._stop.wait()
            await supervisor.stop_all()
            if self._last_words is not None:
                with contextlib.suppress(TimeoutError, StoreError):
                    async with asyncio.timeout(_LAST_WORDS):
                        await self._last_words()
        finally:
            # These connections are used from other loops, which can't close them once this loop has
            # ended.
            for link in self._links:
                await link.close()

    def keep(self, link: ServiceConnection) -> None:
        """Close this connection when the thread ends, if it's still open by then."""
        self._links.append(link)

    @property
    def alive(self) -> bool:
        return self._ready.is_set() and not self._ended.is_set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        return None if self._ended.is_set() else self._loop

    def call(self, act: Callable[[], None]) -> None:
        if self._loop is not None and not self._ended.is_set():
            self._loop.call_soon_threadsafe(act)

    async def stop(self, last_words: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop the services, await `last_words`, and then end the thread."""
        self._last_words = last_words
        if self._stop is not None:
            self.call(self._stop.set)
            # Don't use the loop's executor, because handlers may have filled it or shut it down.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_WITHIN):
                    while not self._ended.is_set():  # noqa: ASYNC110 - a thread sets it
                        await asyncio.sleep(_LOOK)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001
    """Send asyncio's error reports to Tenure's log, which never waits for users' log handlers."""
    log.error("service thread: %s", context.get("message"), exc_info=context.get("exception"))


T = TypeVar("T")


class ServiceThreadConnection:
    """A connection that belongs to the service thread's loop but can be used from another loop."""

    def __init__(self, thread: ServiceThread, make: Callable[[], ServiceConnection]) -> None:
        self._service_thread = thread
        self._make = make
        self._link: ServiceConnection | None = None

    async def run(self, op: Op[T]) -> T:
        return await self._there(self._run(op))

    async def close(self) -> None:
        if self._link is not None and self._service_thread.loop is not None:
            await self._there(self._link.close())

    async def _run(self, op: Op[T]) -> T:
        if self._link is None:
            self._link = self._make()
            self._service_thread.keep(self._link)
        return await self._link.run(op)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._service_thread.loop
        if loop is None:
            work.close()
            raise Unreachable("the service thread of this worker has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
