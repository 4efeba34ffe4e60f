"""Live updates by server-sent events.

News for every open page: one word for all that happened within a moment.

Wakeups tell of new work at once; what nobody rings for (an end, a heartbeat) is looked for every
second. The pages then ask for themselves again, each as often as the server answers quickly.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from time import monotonic

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from tenure.server.dashboard.rendering import SAFE
from tenure.server.dashboard.session import Visitor
from tenure.server.problems import ProblemError

router: APIRouter = APIRouter()
# After that the page asks again, and its access token is looked at again.
_LASTS = 120.0
_KEEP_ALIVE = 15.0
_MOST_TABS = 500


@router.get("/events")
async def events(request: Request, _visitor: Visitor) -> StreamingResponse:
    """One word whenever something may have changed."""
    news: LiveUpdates = request.app.state.news
    if news.listeners >= _MOST_TABS:
        raise ProblemError(
            "too-slow", f"{_MOST_TABS} pages listen already; this one asks by itself"
        )
    return StreamingResponse(
        _stream(news), media_type="text/event-stream", headers={**SAFE, "Cache-Control": "no-store"}
    )


async def _stream(news: "LiveUpdates") -> AsyncIterator[str]:
    until, seen = monotonic() + _LASTS, news.count
    with news.listening():
        yield "retry: 1000\n\n"
        while not news.closed and monotonic() < until:
            count = await news.next(seen, within=_KEEP_ALIVE)
            yield f"event: changed\ndata: {count}\n\n" if count > seen else ": still here\n\n"
            seen = count


QUIET = 0.25
EVERY = 1.0


class LiveUpdates:
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

    def notify(self, _word: str) -> None:
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
