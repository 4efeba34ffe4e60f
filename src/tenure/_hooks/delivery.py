"""The thread that calls listeners on its own event loop, one event at a time and in order."""

import asyncio
import atexit
import contextlib
import inspect
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context

from tenure._log import Log
from tenure._model.event import SHUTDOWN_TIMEOUT, Event, Listener, OnShutdown, name_of

log = Log("tenure")
_MOST = 10_000
_FAILED = "listener %s raised on event %r; nothing else is affected"


class ListenerThread:
    def __init__(self, at_end: OnShutdown) -> None:
        self.pid = os.getpid()
        self._at_end = at_end
        self._events: deque[tuple[Event, Sequence[Listener]]] = deque()
        self._dropped = 0
        self._closing = False
        self._nudged = False
        self._something = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="tenure-listeners", daemon=True)
        self._thread.start()
        atexit.register(self.close, SHUTDOWN_TIMEOUT)

    def put(self, event: Event, listeners: Sequence[Listener]) -> None:
        """Queue an event. Drop it with a warning if too many are waiting."""
        if len(self._events) >= _MOST:
            if not self._dropped:
                log.warning("listeners: %d events are waiting, dropping new ones", _MOST)
            self._dropped += 1
            return
        if self._dropped:
            log.warning("listeners: dropped %d events", self._dropped)
            self._dropped = 0
        self._events.append((event, listeners))
        if not self._nudged:
            self._nudged = True
            self._wake()

    def close(self, within: float) -> None:
        """Deliver queued events within this time, and end the thread."""
        atexit.unregister(self.close)
        self._closing = True
        self._wake()
        if threading.current_thread() is self._thread:
            return
        self._thread.join(within)
        if self._thread.is_alive():
            log.warning("listeners: stopped with %d events undelivered", len(self._events) + 1)

    async def close_in_background(self, act: Callable[[], None]) -> None:
        """On another thread, wait for this one to end, so the caller's loop isn't blocked."""
        await asyncio.to_thread(act)

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the thread and its loop have ended
            self._loop.call_soon_threadsafe(self._something.set)

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        while self._events or not self._closing:
            # Later events wake the loop again. Earlier ones are delivered now.
            self._nudged = False
            self._something.clear()
            while self._events:
                event, listeners = self._events.popleft()
                for listener in listeners:
                    if (task := self._deliver(listener, event)) is not None:
                        await task
            if not self._events and not self._closing:
                await self._something.wait()
        await self._at_end()

    def _deliver(self, listener: Listener, event: Event) -> asyncio.Task[None] | None:
        """Call one listener in a new context. Return a task if it must be awaited."""
        context = Context()
        try:
            answer = context.run(listener, event)
        except BaseException:
            log.exception(_FAILED, name_of(listener), event.name)
            return None
        if answer is None or not inspect.isawaitable(answer):
            return None
        return self._loop.create_task(_awaited(answer, listener, event), context=context)


async def _awaited(answer: Awaitable[object], listener: Listener, event: Event) -> None:
    try:
        await answer
    except BaseException:
        log.exception(_FAILED, name_of(listener), event.name)
