"""Counts the answers of a server, by route: what it knows without asking anybody."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Requests:
    """ASGI middleware, outermost. A path that no route has is one of the others: there is no end of
    them."""

    def __init__(self, app: "ASGIApp", *, counts: "Counter[tuple[str, str, str]]") -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, and count how it was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: "Message") -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "(others)"
                route = getattr(scope.get("route"), "path", "(others)")
                self._counts[method, route, str(message["status"])] += 1
            await send(message)

        await self._app(scope, receive, counted)
