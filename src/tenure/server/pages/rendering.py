"""A page from its template: what all templates are given, and the headers that keep it safe."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse, RedirectResponse

from tenure.admin import Scope
from tenure.server.access import Caller
from tenure.server.pages import words
from tenure.server.pages.visiting import mark, seal, secret_of

if TYPE_CHECKING:
    from collections.abc import Callable

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
        loader=PackageLoader("tenure.server.pages"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= words.FILTERS
    made.globals |= {"places": PLACES, "Scope": Scope, "asset": asset, "now": _now}
    return made


def _now() -> str:
    """The clock that a page counts by."""
    return datetime.now(UTC).isoformat()


@cache
def asset(name: str) -> str:
    """The address of a file of ours, below the root; it changes with what is in the file."""
    content = files("tenure.server.pages").joinpath("static", name).read_bytes()
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
            mark="" if caller is None else mark(secret_of(request)),
            badge=request.app.state.badge,
            said="" if caller is None else _said(request),
        )
    )
    return HTMLResponse(text, status, headers={**SAFE, "Cache-Control": "no-store"})


def _said(request: Request) -> str:
    """What became of the form that has led here, in our own words."""
    text, given = (request.query_params.get(name, "") for name in ("said", "seal"))
    ours = hmac.compare_digest(given.encode(), seal(secret_of(request), text).encode())
    return text if ours else ""


def back(request: Request, path: str, said: str = "") -> RedirectResponse:
    """After a form was done: the page that shows what became of it."""
    where = address(request)(path)
    if said:
        told = urlencode({"said": said, "seal": seal(secret_of(request), said)})
        where = f"{where}{'&' if '?' in where else '?'}{told}"
    return RedirectResponse(where, 303, headers=dict(SAFE))
