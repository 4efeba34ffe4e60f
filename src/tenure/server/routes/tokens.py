"""Access tokens: made, listed, revoked. Nobody gives away more than they have."""

from fastapi import APIRouter

from tenure import _actions
from tenure.admin import covers
from tenure.server.auth import Administrator
from tenure.server.dependencies import AdminDep, PageSize, PageToken, ReasonBody, read_id
from tenure.server.problems import ProblemError
from tenure.server.schemas import installation as shapes
from tenure.server.schemas.base import ActionResult
from tenure.types import EVERY_QUEUE, Grant, Scope, TokenRow

router: APIRouter = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.post("", status_code=201, description=_actions.CREATE_TOKEN.summary)
async def create(
    asked: shapes.TokenIn, caller: Administrator, admin: AdminDep
) -> shapes.TokenCreatedOut:
    """Create a token with no more rights than the caller has."""
    if not covers(caller.grant, Grant(tuple(asked.scopes), tuple(asked.queues))):
        raise ProblemError("forbidden", "that is more than your own access token allows")
    made = await admin.tokens.acreate(
        asked.name,
        caller.by(asked.reason),
        scopes=asked.scopes,
        queues=asked.queues,
        expires_in=asked.expires_in,
    )
    return shapes.TokenCreatedOut(secret=made.secret, token=_token(made.token))


@router.get("")
async def list_tokens(
    caller: Administrator, admin: AdminDep, page_size: PageSize = 100, page_token: PageToken = None
) -> shapes.TokenListOut:
    """Access tokens, newest first."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    before = None if page_token is None else read_id(page_token)
    rows = await admin.tokens.alist(before=before, count=page_size)
    more = str(rows[-1].id) if len(rows) == page_size else None
    return shapes.TokenListOut(tokens=[_token(row) for row in rows], next_page_token=more)


@router.post("/{token_id}:revoke", description=_actions.REVOKE_TOKEN.summary)
async def revoke(
    token_id: str, caller: Administrator, admin: AdminDep, why: ReasonBody
) -> ActionResult:
    """Revoke one token over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    number = read_id(token_id)
    [revoked] = await admin.tokens.arevoke([number], caller.by(why.reason))
    outcome = _actions.REVOKE_TOKEN.outcome(number, revoked)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return ActionResult(result=outcome.status)


def _token(row: TokenRow) -> shapes.TokenOut:
    return shapes.TokenOut.of(row, scopes=row.grant.scopes, queues=row.grant.queues)
