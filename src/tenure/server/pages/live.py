"""News for every open page: one word for all that happened within a moment.

Wakeups tell of new work at once; what nobody rings for (an end, a heartbeat) is looked for every
second. The pages then ask for themselves again, each as often as the server answers quickly.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

QUIET = 0.25
EVERY = 1.0


class Broadcaster:
    """Wakes all who wait for news. Lives on one loop."""

    def __init__(self) -> None:
        self._news = asyncio.Condition()
        self._count = 0
        self._heard = asyncio.Event()
        self._closed = False
        self.listeners: int = 0

    @property
    def count(self) -> int:
        """How often there were news so far."""
        return self._count

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Somebody listens as long as the block lasts."""
        self.listeners += 1
        try:
            yield
        finally:
            self.listeners -= 1

    def hear(self, _word: str) -> None:
        """Something has happened."""
        self._heard.set()

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        self._heard.set()

    @property
    def closed(self) -> bool:
        """Whether the server is about to end."""
        return self._closed

    async def next(self, after: int, *, within: float) -> int:
        """The count of news once there are more than `after`, or when the time is up."""
        async with self._news:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._news.wait_for(lambda: self._count > after or self._closed)
            return self._count

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It tells as long as the block lasts."""
        telling = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling

    async def _tell(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._heard.wait()
                    if not self._closed:
                        await asyncio.sleep(QUIET)
            self._heard.clear()
            async with self._news:
                self._count += 1
                self._news.notify_all()
            if self._closed:
                return
