"""Services on a thread and an event loop of their own, and connections on that loop.

The answer to a claim arrives here. On the handlers' loop it would wait in the socket for as long
as a handler blocks that loop, and no thread would renew the leases in it (rule 7).
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
    """Runs services on a thread of its own, from start to stop."""

    def __init__(self, make: Callable[[], Sequence[Service]], *, name: str = "service") -> None:
        self._make = make
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._stop: asyncio.Event | None = None
        self._last_words: Callable[[], Awaitable[None]] | None = None
        self._thread = threading.Thread(target=self._main, name=f"tenure-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread and return once its services run."""
        self._thread.start()
        self._ready.wait()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception:  # noqa: BLE001 - told, whatever it was
            # Where nobody renews from here on, the deadlines on the board end this process.
            log.exception("the %s thread has died", self._name)
        finally:
            self._ready.set()
            self._ended.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_report)
        self._stop = asyncio.Event()
        supervisor = Supervisor(self._make())
        supervisor.start()
        self._ready.set()
        await self._stop.wait()
        await supervisor.stop_all()
        if self._last_words is not None:
            with contextlib.suppress(TimeoutError, StoreError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._last_words()

    @property
    def alive(self) -> bool:
        return self._ready.is_set() and not self._ended.is_set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop of its thread; None before it runs and after it has ended."""
        return None if self._ended.is_set() else self._loop

    def call(self, act: Callable[[], None]) -> None:
        """Have this done on the service thread's loop."""
        if self._loop is not None and not self._ended.is_set():
            self._loop.call_soon_threadsafe(act)

    async def stop(self, last_words: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop the services, say the last words, end the thread."""
        self._last_words = last_words
        if self._stop is not None:
            self.call(self._stop.set)
            # Not by a thread of the loop's executor: handlers may have filled it or shut it down.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_WITHIN):
                    while not self._ended.is_set():  # noqa: ASYNC110 - a thread sets it
                        await asyncio.sleep(_LOOK)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001
    """Log what asyncio reports, by Tenure's own log: asyncio's would wait for the user's handlers
    on this thread."""
    log.error("service thread: %s", context.get("message"), exc_info=context.get("exception"))


T = TypeVar("T")


class ServiceThreadConnection:
    """Performs operations by a link that is made, used and closed on the service thread's loop."""

    def __init__(self, thread: ServiceThread, make: Callable[[], ServiceConnection]) -> None:
        self._service_thread = thread
        self._make = make
        self._link: ServiceConnection | None = None

    async def run(self, op: Op[T]) -> T:
        """Perform an operation there and return its answer."""
        return await self._there(self._run(op))

    async def close(self) -> None:
        if self._link is not None and self._service_thread.loop is not None:
            await self._there(self._link.close())

    async def _run(self, op: Op[T]) -> T:
        if self._link is None:
            self._link = self._make()
        return await self._link.run(op)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._service_thread.loop
        if loop is None:
            work.close()
            raise Unreachable("the service thread of this worker has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
