"""Sessions: an opaque id in a cookie, and CSRF protection for forms."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from starlette.responses import Response

from tenure.admin import OpenedSession, SessionTerms
from tenure.server.auth import Caller, has
from tenure.server.front import PROXY_USER, address_of
from tenure.server.problems import ProblemError
from tenure.types import Scope

if TYPE_CHECKING:
    from tenure.server.front import ServerOptions
    from tenure.server.session_cache import SessionCache

# The provider of sessions that a trusted proxy has signed in.
PROXY = "proxy"
_MOST_FIELDS = 1100
# Sec-Fetch-Site values for requests from our own pages, and for addresses that the user typed.
_OWN_SITE = ("same-origin", "none")


class Cookie(NamedTuple):
    """The session cookie's name and attributes."""

    name: str
    secure: bool
    path: str


def _options(request: Request) -> "ServerOptions":
    options: ServerOptions = request.app.state.options
    return options


def _cookie(request: Request) -> Cookie:
    """Describe the cookie.

    Its name includes the port, because browsers send a host's cookies to all of its ports. Over
    https, the name has a prefix that keeps other hosts and plain http pages from setting it. Its
    path is the one where this server is mounted.
    """
    secure, port = _options(request).site(request.url.scheme, request.url.port)
    path = str(request.scope.get("root_path", "")).rstrip("/") or "/"
    prefix = "" if not secure else "__Host-" if path == "/" else "__Secure-"
    return Cookie(f"{prefix}tenure_{port}", secure, path)


def secret_of(request: Request) -> str:
    """Return the session's id from the cookie, or fail with 401."""
    secret = request.cookies.get(_cookie(request).name)
    if not secret:
        raise ProblemError(
            "unauthenticated",
            "sign in with an access token. Create one: tenure token create NAME --role viewer",
        )
    return secret


async def current_user(request: Request) -> Caller:
    """Return a page's visitor."""
    # A page that refreshes itself does not keep an idle session alive.
    in_use = "hx-request" not in request.headers and request.scope["path"] != "/events"
    return await find_user(request, in_use=in_use)


async def find_user(request: Request, *, in_use: bool) -> Caller:
    """Return the owner of the cookie's session, or fail with 401."""
    sessions: SessionCache = request.app.state.sessions
    address, access = address_of(request.scope), request.app.state.access
    row, token = await sessions.find(secret_of(request), in_use=in_use, address=address or "")
    if row.provider == PROXY and request.scope.get(PROXY_USER) != row.name:
        raise ProblemError("unauthenticated", "the proxy no longer names this user. Sign in again")
    if token is not None:
        return Caller.of(token, source="page", address=address, session=row.id, access=access)
    return Caller(
        0,
        row.name,
        row.grant,
        source="page",
        page_key=request.app.state.page_key,
        actor=f"user:{row.name}",
        address=address,
        session=row.id,
        access=access,
    )


def terms(request: Request) -> SessionTerms:
    """Return how long a new session of this browser lasts."""
    options = _options(request)
    return SessionTerms(
        options.session_idle,
        options.session_lifetime,
        address_of(request.scope),
        request.headers.get("user-agent"),
    )


def start(request: Request, response: Response, opened: OpenedSession) -> None:
    """Store the session's id in a cookie that scripts can't read.

    The server, not the cookie, determines when the session ends.
    """
    cookie = _cookie(request)
    response.set_cookie(
        cookie.name,
        opened.secret,
        path=cookie.path,
        secure=cookie.secure,
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response) -> None:
    """Delete the session cookie."""
    cookie = _cookie(request)
    response.delete_cookie(
        cookie.name, path=cookie.path, secure=cookie.secure, httponly=True, samesite="strict"
    )


def csrf_token(secret: str) -> str:
    """Derive the forms' CSRF token from the session's id."""
    return hmac.new(secret.encode(), b"tenure form", hashlib.sha256).hexdigest()


def sign_flash(secret: str, text: str) -> str:
    """Sign a result message, so that links on other sites can't inject text of their own."""
    return hmac.new(secret.encode(), b"tenure flash " + text.encode(), hashlib.sha256).hexdigest()


async def submitted_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form submitted from one of our own pages, or fail with 403.

    Repeated fields are joined with commas.
    """
    check_same_origin(request)
    fields = await read_form(request)
    given = fields.pop("mark", "")
    if not hmac.compare_digest(given.encode(), csrf_token(secret_of(request)).encode()):
        raise ProblemError(
            "forbidden", "this form belongs to another session. Reload the page and try again"
        )
    return fields


def check_same_origin(request: Request) -> None:
    """Reject requests from other sites' pages, as reported by the browser."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    public = _options(request).origin
    if public is None:
        own = not origin or urlsplit(origin).netloc == request.url.netloc
    else:
        own = not origin or origin.lower() == public
    if site not in _OWN_SITE or not own:
        raise ProblemError("forbidden", "this form was sent from another site")


async def read_form(request: Request) -> dict[str, str]:
    """Parse a form's fields."""
    try:
        pairs = parse_qsl(
            (await request.body()).decode(),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise ProblemError(
            "bad-request", "the form could not be read. Reload the page and try again"
        ) from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]},{value}" if fields.get(name) else value
    return fields


def _needing(scope: Scope) -> Any:
    async def check(visitor: Annotated[Caller, Depends(current_user)]) -> Caller:
        return has(visitor, scope)

    return Depends(check)


Visitor = Annotated[Caller, Depends(current_user)]
Looking = Annotated[Caller, _needing(Scope.READ)]
Operating = Annotated[Caller, _needing(Scope.OPERATE)]
Administering = Annotated[Caller, _needing(Scope.ADMIN)]
Sent = Annotated[Mapping[str, str], Depends(submitted_form)]
