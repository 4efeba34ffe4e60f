"""A thread with an event loop of its own, for what must not share the handlers' fate."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure._services.base import Service, log
from tenure._services.supervisor import Supervisor
from tenure.errors import StoreError

_LAST_WORDS = 2.0


class Keeper:
    """Runs services on a thread of its own, from start to stop."""

    def __init__(self, make: Callable[[], Sequence[Service]], *, name: str = "keeper") -> None:
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
            log.exception("the %s's thread has died", self._name)
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
        """Whether the thread runs its services."""
        return self._ready.is_set() and not self._ended.is_set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop of its thread; None before it runs and after it has ended."""
        return None if self._ended.is_set() else self._loop

    def call(self, act: Callable[[], None]) -> None:
        """Have this done on the keeper's loop."""
        if self._loop is not None and not self._ended.is_set():
            self._loop.call_soon_threadsafe(act)

    async def stop(self, last_words: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop the services, say the last words, end the thread."""
        self._last_words = last_words
        if self._stop is not None:
            self.call(self._stop.set)
            await asyncio.to_thread(self._ended.wait, 10)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001
    """Log what asyncio reports, by Tenure's own log: asyncio's would wait for the user's handlers
    on this thread."""
    log.error("keeper: %s", context.get("message"), exc_info=context.get("exception"))
