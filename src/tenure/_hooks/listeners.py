"""Register listeners, and deliver events to them without waiting.

The `delivery` module, which contains the delivery thread, is imported only once an event has a
listener.
"""

import inspect
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure._model.event import EVENTS, SHUTDOWN_TIMEOUT, Event, Listener, OnShutdown, name_of
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from tenure._hooks.delivery import ListenerThread


class Listeners:
    """An app's listeners, called on their own thread, one event at a time and in order.

    The thread and its event loop start once an event has a listener. `at_end` is awaited on that
    loop before the loop ends.
    """

    def __init__(self, at_end: OnShutdown) -> None:
        self._at_end = at_end
        self.by_name: dict[str, list[Listener]] = {}
        self._lock = threading.Lock()
        self._thread: ListenerThread | None = None

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def check(self, names: Sequence[str]) -> None:
        if not names or any(callable(name) for name in names):
            raise InvalidValue('name the events to listen for: write @app.on("failed")')
        for name in names:
            if name not in EVENTS:
                raise InvalidValue(f"unknown event {name!r}; use one of: {', '.join(EVENTS)}")

    def add(self, names: Sequence[str], listener: Listener) -> None:
        """Register a listener. Raise InvalidValue if it can't be called with one event."""
        if inspect.isgeneratorfunction(listener) or inspect.isasyncgenfunction(listener):
            raise InvalidValue(
                f"{name_of(listener)} has a yield, but a listener is called after the event; "
                "use middleware to run code around a call"
            )
        try:
            inspect.signature(listener).bind(None)
        except TypeError as error:
            raise InvalidValue(
                f"{name_of(listener)} must take one argument, the event: {error}"
            ) from error
        for name in dict.fromkeys(names):
            self.by_name.setdefault(name, []).append(listener)

    def deliver(self, event: Event) -> None:
        """Queue an event for its listeners, from any thread, without waiting."""
        listeners = self.by_name.get(event.name)
        if listeners:
            thread = self._thread
            if thread is None or thread.pid != os.getpid():
                thread = self._started()
            thread.put(event, listeners)

    def _started(self) -> "ListenerThread":
        from tenure._hooks.delivery import ListenerThread  # noqa: PLC0415 - most programs have no listener

        with self._lock:
            # A forked process has its parent's memory but not its threads.
            if self._thread is None or self._thread.pid != os.getpid():
                self._thread = ListenerThread(self._at_end)
            return self._thread

    def close(self, within: float = SHUTDOWN_TIMEOUT) -> None:
        """Deliver queued events within this time, then end the thread. The next event starts it."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread.pid == os.getpid():
            thread.close(within)

    async def aclose(self) -> None:
        """Async version of `close()`."""
        if self._thread is not None:
            await self._thread.close_in_background(self.close)
