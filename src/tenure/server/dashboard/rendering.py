"""Templates, headers, static files, and problems as pages."""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tenure import _actions
from tenure.errors import TenureError
from tenure.server.auth import Caller
from tenure.server.dashboard import filters
from tenure.server.dashboard.session import csrf_token, current_user, secret_of, sign_flash
from tenure.server.problems import ProblemError
from tenure.types import Scope

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# In the order of the bar, with the key that leads there after `g`.
PLACES = (
    ("Overview", "/", "o"),
    ("Queues", "/queues", "q"),
    ("Jobs", "/jobs", "j"),
    ("Schedules", "/schedules", "s"),
    ("Workers", "/workers", "w"),
    ("Dead letters", "/failed", "d"),
    ("Operations", "/operations", "p"),
    ("Audit", "/audit", "a"),
    ("System", "/system", "y"),
)


@cache
def environment() -> Environment:
    """The templates; whatever is put into one is text, never markup."""
    made = Environment(
        loader=PackageLoader("tenure.server.dashboard"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters.FILTERS
    made.globals |= {
        "places": PLACES,
        "Scope": Scope,
        "asset": asset,
        "now": _now,
        "actions": _actions,
    }
    return made


def _now() -> str:
    """The clock that a page counts by."""
    return datetime.now(UTC).isoformat()


@cache
def asset(name: str) -> str:
    """The address of a file of ours, below the root; it changes with what is in the file."""
    content = files("tenure.server.dashboard").joinpath("static", name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def address(request: Request) -> "Callable[[str], str]":
    """Where a path of ours is, for this server may be mounted below another."""
    root: str = request.scope.get("root_path", "").rstrip("/")
    return lambda path: f"{root}{path}"


def render(
    request: Request, caller: Caller | None, template: str, *, status: int = 200, **facts: Any
) -> HTMLResponse:
    """The answer to a request for a page. A page is its visitor's own, and never kept."""
    text = (
        environment()
        .get_template(template)
        .render(
            **facts,
            url=address(request),
            path=request.scope["path"].removeprefix(request.scope.get("root_path", "")) or "/",
            visitor=caller,
            may=(lambda _scope, _queue="*": False) if caller is None else caller.may,
            mark="" if caller is None else csrf_token(secret_of(request)),
            badge=request.app.state.badge,
            flash="" if caller is None else _flash(request),
        )
    )
    return HTMLResponse(text, status, headers={**SAFE, "Cache-Control": "no-store"})


def _flash(request: Request) -> str:
    """The outcome of the form that has led here, if this server has signed the sentence."""
    text, given = (request.query_params.get(name, "") for name in ("flash", "seal"))
    ours = hmac.compare_digest(given.encode(), sign_flash(secret_of(request), text).encode())
    return text if ours else ""


def back(request: Request, path: str, flash: str = "") -> RedirectResponse:
    """After a form was done: the page that shows the outcome, with a sentence about it."""
    where = address(request)(path)
    if flash:
        flash = f"{flash[0].upper()}{flash[1:].rstrip('.')}."
        query = urlencode({"flash": flash, "seal": sign_flash(secret_of(request), flash)})
        where = f"{where}{'&' if '?' in where else '?'}{query}"
    return RedirectResponse(where, 303, headers=dict(SAFE))


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
        return await current_user(request)
    except (ProblemError, TenureError):
        return None


def _wants_page(request: Request) -> bool:
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return not path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")


router: APIRouter = APIRouter()
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Its address names what is in it.
_KEPT = "public, max-age=31536000, immutable"


@cache
def _known() -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}

    def look(folder: "Traversable", before: str) -> None:
        for one in folder.iterdir():
            if one.is_dir():
                look(one, f"{before}{one.name}/")
            elif kind := _KINDS.get(f".{one.name.rpartition('.')[2]}"):
                found[before + one.name] = kind, one.read_bytes()

    look(files("tenure.server.dashboard").joinpath("static"), "")
    return found


@router.get("/static/{name:path}")
async def serve_asset(name: str) -> Response:
    """One file; anybody may have it, for the page to sign in needs some."""
    if name not in _known():
        raise ProblemError("not-found", "there is no such file")
    kind, content = _known()[name]
    return Response(content, media_type=kind, headers={**SAFE, "Cache-Control": _KEPT})
