"""Listen for wakeups.

A lost wakeup only delays a job until the next poll. The job itself is never lost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from tenure._services.base import Service, log


class Wakeups(Service):
    name = "wakeups"

    def __init__(
        self,
        listen: Callable[[], AsyncIterator[str]],
        on_wakeup: Callable[[str], None],
        *,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(timedelta(seconds=0.2))
        self._listen_to = listen
        self._on_wakeup = on_wakeup
        self._close = close
        self._listening: asyncio.Task[None] | None = None

    async def tick(self) -> int:
        self._listening = asyncio.ensure_future(self._listen())
        try:
            await self._listening
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        return 0

    async def _listen(self) -> None:
        async for queue in self._listen_to():
            if self._failures:
                log.info("wakeups: listening again")
            self._failures = 0
            # The first item arrives once listening starts. Earlier wakeups may have been missed.
            self._on_wakeup(queue)

    def stop(self) -> None:
        super().stop()
        if self._listening is not None:
            self._listening.cancel()

    async def close(self) -> None:
        if self._close is not None:
            await self._close()
