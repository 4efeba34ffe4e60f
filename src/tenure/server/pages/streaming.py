"""The stream of events that an open page listens to."""

from collections.abc import AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from tenure.server.pages.rendering import SAFE
from tenure.server.pages.visiting import Visitor
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from tenure.server.pages.live import Broadcaster

router: APIRouter = APIRouter()
# After that the page asks again, and its access token is looked at again.
_LASTS = 120.0
_KEEP_ALIVE = 15.0
_MOST_TABS = 500


@router.get("/events")
async def events(request: Request, _visitor: Visitor) -> StreamingResponse:
    """One word whenever something may have changed."""
    news: Broadcaster = request.app.state.news
    if news.listeners >= _MOST_TABS:
        raise Problem("too-slow", f"{_MOST_TABS} pages listen already; this one asks by itself")
    return StreamingResponse(
        _stream(news), media_type="text/event-stream", headers={**SAFE, "Cache-Control": "no-store"}
    )


async def _stream(news: "Broadcaster") -> AsyncIterator[str]:
    until, seen = monotonic() + _LASTS, news.count
    with news.listening():
        yield "retry: 1000\n\n"
        while not news.closed and monotonic() < until:
            count = await news.next(seen, within=_KEEP_ALIVE)
            yield f"event: changed\ndata: {count}\n\n" if count > seen else ": still here\n\n"
            seen = count
