"""Who looks at a page: an access token in a cookie, and what a form must bring to be believed."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from starlette.responses import Response

from tenure.server.auth import Caller, has
from tenure.server.problems import ProblemError
from tenure.types import Scope

if TYPE_CHECKING:
    from tenure.server.auth import TokenCache

_LASTS = 30 * 24 * 3600
_MOST_FIELDS = 1100
# What a browser says of a request that one of our own pages, or the person at it, has made.
_OWN_SITE = ("same-origin", "none")


def _cookie(request: Request) -> str:
    """The cookie's name. With https no other host, nor plain http, can set it."""
    return "__Host-tenure" if request.url.scheme == "https" else "tenure"


def secret_of(request: Request) -> str:
    """The access token that a browser keeps; 401 if it keeps none."""
    secret = request.cookies.get(_cookie(request))
    if not secret:
        raise ProblemError("unauthenticated", "sign in with an access token: tenure token create")
    return secret


async def current_user(request: Request) -> Caller:
    """Whoever looks at a page."""
    keys: TokenCache = request.app.state.keys
    row = await keys.find(secret_of(request))
    return Caller(row.id, row.name, row.grant, source="page")


def sign_in(request: Request, response: Response, secret: str) -> None:
    """Let the browser keep the access token, where no script can read it."""
    response.set_cookie(
        _cookie(request),
        secret,
        max_age=_LASTS,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def sign_out(request: Request, response: Response) -> None:
    """Let the browser forget it."""
    response.delete_cookie(
        _cookie(request),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def csrf_token(secret: str) -> str:
    """What a form on our page has in it and one elsewhere cannot: made of the access token."""
    return hmac.new(secret.encode(), b"tenure form", hashlib.sha256).hexdigest()


def sign_flash(secret: str, text: str) -> str:
    """What a sentence has that one of our forms has led to: a link from elsewhere cannot speak."""
    return hmac.new(secret.encode(), b"tenure flash " + text.encode(), hashlib.sha256).hexdigest()


async def submitted_form(request: Request) -> Mapping[str, str]:
    """The fields of a form that was sent from a page of ours; 403 if it was not. What is chosen
    several times is joined by commas."""
    check_same_origin(request)
    fields = await read_form(request)
    given = fields.pop("mark", "")
    if not hmac.compare_digest(given.encode(), csrf_token(secret_of(request)).encode()):
        raise ProblemError("forbidden", "this form is not of your session; load the page again")
    return fields


def check_same_origin(request: Request) -> None:
    """Refuse what a page elsewhere has sent: the browser says from where."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    if site not in _OWN_SITE or (origin and urlsplit(origin).netloc != request.url.netloc):
        raise ProblemError("forbidden", "forms are taken from this server's own pages alone")


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form."""
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
            "bad-request", "the form could not be read; load the page again"
        ) from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]},{value}" if fields.get(name) else value
    return fields


def _needing(scope: Scope) -> Any:
    async def let_in(asking: Annotated[Caller, Depends(current_user)]) -> Caller:
        return has(asking, scope)

    return Depends(let_in)


Visitor = Annotated[Caller, Depends(current_user)]
Looking = Annotated[Caller, _needing(Scope.READ)]
Operating = Annotated[Caller, _needing(Scope.OPERATE)]
Administering = Annotated[Caller, _needing(Scope.ADMIN)]
Sent = Annotated[Mapping[str, str], Depends(submitted_form)]
