"""A problem as a page: for whoever looks by a browser, where others get JSON."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from tenure.errors import TenureError
from tenure.server.access import Caller
from tenure.server.pages.rendering import render
from tenure.server.pages.visiting import visitor
from tenure.server.problems import Problem

_FOR_PROGRAMS = ("/v1", "/live", "/ready", "/metrics", "/openapi.json", "/static", "/events")

Handler = Callable[[Request, Any], Awaitable[Response]]


def install(api: FastAPI) -> None:
    """Let every problem be told as a page to whoever asks for one."""
    for kind, handler in list(api.exception_handlers.items()):
        api.add_exception_handler(kind, _paged(handler))  # type: ignore[arg-type] # ours are async


def _paged(answer: Handler) -> Handler:
    async def paged(request: Request, error: Exception) -> Response:
        problem = await answer(request, error)
        if not _wants_page(request) or problem.media_type != "application/problem+json":
            return problem
        said = json.loads(bytes(problem.body))
        if said["status"] == 401:
            to = request.url.path if request.method == "GET" else "/"
            if request.method == "GET" and request.url.query:
                to = f"{to}?{request.url.query}"
            root = request.scope.get("root_path", "")
            return render(
                request,
                None,
                "sign-in.html",
                status=401,
                to=to.removeprefix(root) or "/",
                refused="",
            )
        caller = await _whoever(request)
        page = render(request, caller, "problem.html", status=said["status"], problem=said)
        if again := problem.headers.get("Retry-After"):
            page.headers["Retry-After"] = again
        return page

    return paged


async def _whoever(request: Request) -> Caller | None:
    """Who looks, if that can be told now: the bar stays for them."""
    try:
        return await visitor(request)
    except (Problem, TenureError):
        return None


def _wants_page(request: Request) -> bool:
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return not path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")
