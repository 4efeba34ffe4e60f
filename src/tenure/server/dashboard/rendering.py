"""Render templates, static files, and problems as pages."""

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
from tenure.server.front import PROXY_USER
from tenure.server.problems import ProblemError
from tenure.types import Scope

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# The dashboard uses none of these features, so no injected script may use them either.
_PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        *("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "midi"),
        *("microphone", "payment", "publickey-credentials-get", "serial", "usb"),
    )
)
SAFE: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": _PERMISSIONS,
}
# In navigation order, with each page's keyboard shortcut after `g`.
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
    """Load the templates. Values are escaped as text, never used as markup."""
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
    """The time that a page's countdowns start from."""
    return datetime.now(UTC).isoformat()


@cache
def asset(name: str) -> str:
    """Return a static file's path, with a hash of its content."""
    content = files("tenure.server.dashboard").joinpath("static", name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def address(request: Request) -> "Callable[[str], str]":
    """Return a function that prefixes paths, because this server may be mounted under a path."""
    root: str = request.scope.get("root_path", "").rstrip("/")
    return lambda path: f"{root}{path}"


def render(
    request: Request, caller: Caller | None, template: str, *, status: int = 200, **facts: Any
) -> HTMLResponse:
    """Render a page. It must not be cached, because it depends on the visitor."""
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
    page = filters.show_unseen(text)
    return HTMLResponse(page, status, headers={**SAFE, "Cache-Control": "no-store"})


def _flash(request: Request) -> str:
    """Return the last form's result message, if this server signed it."""
    text, given = (request.query_params.get(name, "") for name in ("flash", "seal"))
    ours = hmac.compare_digest(given.encode(), sign_flash(secret_of(request), text).encode())
    return text if ours else ""


def back(request: Request, path: str, flash: str = "") -> RedirectResponse:
    """Redirect to a page after a form is submitted, with a message about the result."""
    where = address(request)(path)
    if flash:
        flash = f"{flash[0].upper()}{flash[1:].rstrip('.')}."
        query = urlencode({"flash": flash, "seal": sign_flash(secret_of(request), flash)})
        where = f"{where}{'&' if '?' in where else '?'}{query}"
    return RedirectResponse(where, 303, headers=dict(SAFE))


_FOR_PROGRAMS = ("/v1", "/live", "/ready", "/metrics", "/openapi.json", "/static", "/events")

Handler = Callable[[Request, Any], Awaitable[Response]]


def install(api: FastAPI) -> None:
    """Render problems as pages for browsers."""
    for kind, handler in list(api.exception_handlers.items()):
        api.add_exception_handler(kind, _paged(handler))  # type: ignore[arg-type] # ours are async


def _paged(answer: Handler) -> Handler:
    async def paged(request: Request, error: Exception) -> Response:
        problem = await answer(request, error)
        if not _wants_page(request) or problem.media_type != "application/problem+json":
            return problem
        body = json.loads(bytes(problem.body))
        if body["status"] == 401:
            return _sign_in(request)
        caller = await _visitor(request)
        page = render(request, caller, "problem.html", status=body["status"], problem=body)
        if again := problem.headers.get("Retry-After"):
            page.headers["Retry-After"] = again
        return page

    return paged


def _sign_in(request: Request) -> Response:
    """Ask the visitor to sign in. A user from a trusted proxy is signed in without a form."""
    to = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        to = f"{to}?{request.url.query}"
    to = to.removeprefix(request.scope.get("root_path", "")) or "/"
    place = address(request)(f"/sign-in?{urlencode({'to': to})}")
    if request.scope.get(PROXY_USER) is not None and "hx-request" not in request.headers:
        return RedirectResponse(place, 303, headers=dict(SAFE))
    page = render(request, None, "sign-in.html", status=401, to=to, refused="")
    # If a link on another site led here, the browser withholds the cookie. It sends the cookie when
    # the navigation starts on this page.
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        page.headers["Refresh"] = f"0; url={place}"
    return page


async def _visitor(request: Request) -> Caller | None:
    """Return the visitor, if possible, so the page keeps its navigation."""
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
# The path contains a hash of the content.
_KEPT = "public, max-age=31536000, immutable"


@cache
def _known() -> dict[str, tuple[str, bytes]]:
    content: dict[str, tuple[str, bytes]] = {}

    def walk(folder: "Traversable", before: str) -> None:
        for one in folder.iterdir():
            if one.is_dir():
                walk(one, f"{before}{one.name}/")
            elif kind := _KINDS.get(f".{one.name.rpartition('.')[2]}"):
                content[before + one.name] = kind, one.read_bytes()

    walk(files("tenure.server.dashboard").joinpath("static"), "")
    return content


@router.get("/static/{name:path}")
async def serve_asset(name: str) -> Response:
    """Serve a static file. No token is required, because the sign-in page needs some files."""
    if name not in _known():
        raise ProblemError("not-found", "there is no such file")
    kind, content = _known()[name]
    return Response(content, media_type=kind, headers={**SAFE, "Cache-Control": _KEPT})
