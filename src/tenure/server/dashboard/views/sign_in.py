"""Sign in with an access token, a one-time code or a trusted proxy, and sign out."""

import logging
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.admin import OpenedSession, Sessions, SignInCode
from tenure.errors import TenureError, TokenRefused
from tenure.server.dashboard import forms, session
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Sent, Visitor
from tenure.server.dependencies import AdminDep
from tenure.server.front import PROXY_USER, address_of
from tenure.server.problems import ProblemError

if TYPE_CHECKING:
    from tenure.server.auth import TokenCache
    from tenure.server.front import ServerOptions
    from tenure.server.session_cache import SessionCache
    from tenure.server.strangers import Strangers

log: logging.Logger = logging.getLogger("tenure")
router: APIRouter = APIRouter()


@router.get("/sign-in")
async def form(request: Request, admin: AdminDep, to: str = "/") -> Response:
    """Ask for an access token.

    A visitor who has a session, or whose name comes from a trusted proxy, is sent to the requested
    page. A visitor who follows a link on another site also comes here first. The browser withholds
    the cookie from that first request, and sends it with the next one.
    """
    to = forms.to({"to": to}, "/")
    user = request.scope.get(PROXY_USER)
    try:
        await session.find_user(request, in_use=True)
    except (ProblemError, TenureError):
        pass
    else:
        return back(request, to)
    if user is None:
        return render(request, None, "sign-in.html", to=to, refused="")
    options: ServerOptions = request.app.state.options
    grant = options.grant(user)
    if grant is None:
        refused = f"{user} has no role here. Ask an administrator to add one to --proxy-role"
        return render(request, None, "sign-in.html", status=401, to=to, refused=refused)
    opened = await admin.sessions.aopen_for_user(user, session.PROXY, grant, session.terms(request))
    return _signed_in(request, opened, to)


@router.post("/sign-in")
async def sign_in(request: Request, admin: AdminDep) -> Response:
    """Open a session for the token or code, and redirect to the requested page."""
    session.check_same_origin(request)
    fields = await session.read_form(request)
    secret, to = fields.get("token", "").strip(), forms.to(fields, "/")
    keys: TokenCache = request.app.state.keys
    strangers: Strangers = request.app.state.strangers
    try:
        terms, address = session.terms(request), address_of(request.scope) or ""
        if SignInCode.matches(secret):
            query = Sessions.sign_in.describe(admin.sessions, secret, terms)
            opened = await strangers.look_up(query, address=address, what="sign-in codes")
        else:
            await keys.find(secret, address=address)
            opened = await admin.sessions.asign_in(secret, terms)
    except TokenRefused as error:
        return render(request, None, "sign-in.html", status=401, to=to, refused=str(error))
    return _signed_in(request, opened, to)


def _signed_in(request: Request, opened: OpenedSession, to: str) -> Response:
    row = opened.session
    log.info("server: signed in, session=%d name=%s address=%s", row.id, row.name, row.address)
    answer = back(request, to)
    session.start(request, answer, opened)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request, visitor: Visitor, admin: AdminDep, _fields: Sent) -> Response:
    """End the session. The access token stays valid."""
    sessions: SessionCache = request.app.state.sessions
    by = visitor.by(None)
    if visitor.session is not None:
        await admin.sessions.asign_out(visitor.session, by)
    sessions.forget(session.secret_of(request))
    log.info(
        "server: signed out, session=%s name=%s address=%s",
        *(visitor.session, visitor.name, visitor.address),
    )
    answer = back(request, "/sign-in")
    session.forget(request, answer)
    return answer
