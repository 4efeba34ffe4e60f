"""Live updates with server-sent events.

Changes that happen close together reach each open page as a single event. Wakeups announce new work
immediately. Other changes, such as a completed job or a heartbeat, have no wakeup, so an event is
also sent every second. Pages then reload themselves, but less often if the server is slow.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from time import monotonic

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from tenure.errors import StoreError, TokenRefused
from tenure.server.dashboard.rendering import SAFE
from tenure.server.dashboard.session import Looking, find_user
from tenure.server.problems import ProblemError

router: APIRouter = APIRouter()
# After this long, the page reconnects and its access token is checked again.
_LASTS = 120.0
_KEEP_ALIVE = 15.0
_MOST_TABS = 500
_MOST_TABS_EACH = 20


@router.get("/events")
async def events(request: Request, visitor: Looking) -> StreamingResponse:
    """Send an event whenever something may have changed."""
    news: LiveUpdates = request.app.state.news
    if news.listeners >= _MOST_TABS:
        raise ProblemError(
            "too-slow", f"{_MOST_TABS} pages are connected already. This page polls instead"
        )
    if news.listening_as(visitor.id) >= _MOST_TABS_EACH:
        raise ProblemError(
            "too-many-requests",
            f"{_MOST_TABS_EACH} of your pages are connected already. This page polls instead",
        )
    return StreamingResponse(
        _stream(news, visitor.id, request),
        media_type="text/event-stream",
        headers={**SAFE, "Cache-Control": "no-store"},
    )


async def _stream(news: "LiveUpdates", visitor: int, request: Request) -> AsyncIterator[str]:
    until, seen = monotonic() + _LASTS, news.count
    with news.listening(visitor):
        yield "retry: 1000\n\n"
        while not news.closed and monotonic() < until:
            count = await news.next(seen, within=_KEEP_ALIVE)
            if not await _is_welcome(request):
                return
            yield f"event: changed\ndata: {count}\n\n" if count > seen else ": still here\n\n"
            seen = count


async def _is_welcome(request: Request) -> bool:
    """Return whether the session is valid. The answer is at most two seconds old."""
    try:
        await find_user(request, in_use=False)
    except (TokenRefused, ProblemError):
        return False
    except StoreError:
        # The stream doesn't contain any data from the database, and the page notices an outage by
        # itself.
        return True
    return True


QUIET = 0.25
EVERY = 1.0


class LiveUpdates:
    """Wakes all open pages. Lives on a single event loop."""

    def __init__(self) -> None:
        self._news = asyncio.Condition()
        self._count = 0
        self._heard = asyncio.Event()
        self._closed = False
        self._listeners: Counter[int] = Counter()

    @property
    def count(self) -> int:
        """The number of updates so far."""
        return self._count

    @property
    def listeners(self) -> int:
        """The number of open pages."""
        return self._listeners.total()

    def listening_as(self, visitor: int) -> int:
        """Return how many open pages one visitor has."""
        return self._listeners[visitor]

    @contextmanager
    def listening(self, visitor: int) -> Iterator[None]:
        """Count a visitor's page while the block runs."""
        self._listeners[visitor] += 1
        try:
            yield
        finally:
            self._listeners[visitor] -= 1
            self._listeners += Counter()  # Drops zeros.

    def notify(self, _channel: str) -> None:
        """Report a change."""
        self._heard.set()

    def close(self) -> None:
        """Wake all pages, because the server is stopping."""
        self._closed = True
        self._heard.set()

    @property
    def closed(self) -> bool:
        """Whether the server is about to stop."""
        return self._closed

    async def next(self, after: int, *, within: float) -> int:
        """Wait for an update newer than `after`, or for the timeout. Return the latest number."""
        async with self._news:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._news.wait_for(lambda: self._count > after or self._closed)
            return self._count

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send updates while the block runs."""
        sending = asyncio.create_task(self._send())
        try:
            yield
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending

    async def _send(self) -> None:
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
