"""Listeners: who wants to hear of what. What they are told has happened; nobody waits for it.

The thread that tells them is in `delivery`, loaded with the first event that somebody wants.
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
    """Who wants to hear of what. Told one event at a time, in order, on a thread of their own
    with an event loop of its own; it is started with the first event that somebody wants.
    `at_end` is awaited there before that loop ends."""

    def __init__(self, at_end: OnShutdown) -> None:
        self._at_end = at_end
        self.by_name: dict[str, list[Listener]] = {}
        self._lock = threading.Lock()
        self._teller: ListenerThread | None = None

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def check(self, names: Sequence[str]) -> None:
        """InvalidValue if there is no such event."""
        if not names or any(callable(name) for name in names):
            raise InvalidValue('a listener says what it listens for: write @app.on("failed")')
        for name in names:
            if name not in EVENTS:
                raise InvalidValue(f"there is no event {name!r}; there are: {', '.join(EVENTS)}")

    def add(self, names: Sequence[str], listener: Listener) -> None:
        """Register a listener; InvalidValue if it cannot be one."""
        if inspect.isgeneratorfunction(listener) or inspect.isasyncgenfunction(listener):
            raise InvalidValue(
                f"{name_of(listener)} has a yield, and a listener is told after the fact; "
                "middleware is what goes around"
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
        """Have an event told soon, if somebody wants it. From any thread; does not wait."""
        listeners = self.by_name.get(event.name)
        if listeners:
            teller = self._teller
            if teller is None or teller.pid != os.getpid():
                teller = self._started()
            teller.put(event, listeners)

    def _started(self) -> "ListenerThread":
        from tenure._hooks.delivery import ListenerThread  # noqa: PLC0415 - most programs have no listener

        with self._lock:
            # A process that was forked has its parent's memory, but not its threads.
            if self._teller is None or self._teller.pid != os.getpid():
                self._teller = ListenerThread(self._at_end)
            return self._teller

    def close(self, within: float = SHUTDOWN_TIMEOUT) -> None:
        """Let what waits be told, as long as that takes no longer than this, and end the thread;
        the next event starts another."""
        with self._lock:
            teller, self._teller = self._teller, None
        if teller is not None and teller.pid == os.getpid():
            teller.close(within)

    async def aclose(self) -> None:
        """The same in the async world."""
        if self._teller is not None:
            await self._teller.close_in_background(self.close)
