"""Dashboard session routes."""

from fastapi import APIRouter

from tenure import _actions
from tenure.server.auth import Administrator, Caller
from tenure.server.dependencies import AdminDep, PageSize, PageToken, ReasonBody, read_id
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.schemas import installation as shapes
from tenure.server.schemas.base import ActionResult
from tenure.types import EVERY_QUEUE, Scope, SessionRow

router: APIRouter = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get("")
async def list_sessions(
    caller: Administrator,
    admin: AdminDep,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    *,
    active: bool = False,
) -> shapes.SessionListOut:
    """List dashboard sessions, newest first. Without `admin` for all queues, you see the sessions
    of your own token.
    """
    return await seen_sessions(caller, admin, page_size, page_token, active=active)


async def seen_sessions(
    caller: Caller,
    admin: AdminDep,
    page_size: int = 100,
    page_token: str | None = None,
    *,
    active: bool = False,
) -> shapes.SessionListOut:
    """List the sessions that the caller may see: all of them, its token's, or just its own."""
    every = caller.may(Scope.ADMIN, EVERY_QUEUE)
    place = unseal(caller, page_token, "sessions")
    rows = await admin.sessions.alist(
        before=None if place is None else read_id(place),
        count=page_size,
        active=active,
        token=None if every else caller.id,
        session=None if every else caller.session,
    )
    more = str(rows[-1].id) if len(rows) == page_size else None
    return shapes.SessionListOut(
        sessions=[_session(row) for row in rows],
        next_page_token=seal(caller, more, "sessions"),
    )


@router.post("/{session_id}:revoke", description=_actions.REVOKE_SESSION.summary)
async def revoke(
    session_id: str, caller: Administrator, admin: AdminDep, why: ReasonBody
) -> ActionResult:
    """Revoke one session over HTTP."""
    return ActionResult(result=await revoke_seen(session_id, caller, admin, why.reason))


async def revoke_seen(session_id: str, caller: Caller, admin: AdminDep, reason: str | None) -> str:
    """End a session that the caller may see, or fail with 404."""
    number = read_id(session_id)
    every = caller.may(Scope.ADMIN, EVERY_QUEUE) or number == caller.session
    [ended] = await admin.sessions.arevoke(
        [number], caller.by(reason), token=None if every else caller.id
    )
    outcome = _actions.REVOKE_SESSION.outcome(number, ended)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return outcome.status


def _session(row: SessionRow) -> shapes.SessionOut:
    return shapes.SessionOut.of(row, scopes=row.grant.scopes, queues=row.grant.queues)
