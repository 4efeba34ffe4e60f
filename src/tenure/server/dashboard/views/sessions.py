"""The sessions page: who is signed in, and from where."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure import _actions
from tenure.server.dashboard.forms import why
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Sent, Visitor
from tenure.server.dependencies import AdminDep, PageToken
from tenure.server.routes import sessions
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter()
_PAGE = 100


@router.get("/sessions")
async def page(
    request: Request, caller: Visitor, admin: AdminDep, page_token: PageToken = None
) -> Response:
    """Show the sessions that the visitor may see, newest first."""
    found = await sessions.seen_sessions(caller, admin, _PAGE, page_token)
    more = found.next_page_token
    return render(
        request,
        caller,
        "sessions.html",
        sessions=found.sessions,
        every=caller.may(Scope.ADMIN, EVERY_QUEUE),
        first="/sessions" if page_token else None,
        next=None if more is None else f"/sessions?page_token={more}",
    )


@router.post("/sessions/{session_id}:revoke")
async def revoke(
    session_id: str, request: Request, caller: Visitor, admin: AdminDep, fields: Sent
) -> Response:
    """End a session."""
    await sessions.revoke_seen(session_id, caller, admin, why(fields).reason)
    sentence = _actions.REVOKE_SESSION.outcome(session_id).sentence
    return back(request, "/sessions", sentence)
