"""Access token routes. A new token can't have more rights than its creator."""

from typing import Annotated

from fastapi import APIRouter, Body

from tenure import _actions
from tenure.admin import covers, role_scopes
from tenure.server.auth import Administrator, Caller
from tenure.server.dependencies import AdminDep, PageSize, PageToken, read_id
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.quotas import narrower
from tenure.server.schemas import installation as shapes
from tenure.server.schemas.base import ActionResult
from tenure.types import EVERY_QUEUE, Grant, Scope, TokenRow

router: APIRouter = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.post("", status_code=201, description=_actions.CREATE_TOKEN.summary)
async def create(
    body: shapes.TokenIn, caller: Administrator, admin: AdminDep
) -> shapes.TokenCreatedOut:
    """Create a token with no more rights than the caller has, that ends with the caller's."""
    scopes = (*body.scopes, *(role_scopes(body.role) if body.role else ()))
    if not covers(caller.grant, Grant(scopes, tuple(body.queues), tuple(body.tasks))):
        raise ProblemError(
            "forbidden", "a new token cannot have more scopes, queues or tasks than yours"
        )
    made = await admin.tokens.acreate(
        body.name,
        caller.by(body.reason),
        scopes=scopes,
        queues=body.queues,
        expires_in=body.expires_in,
        tasks=body.tasks,
        quotas=narrower(body.quotas, caller.quotas),
        parent=caller.id,
    )
    return shapes.TokenCreatedOut(secret=made.secret, token=_token(made.token))


@router.get("")
async def list_tokens(
    caller: Administrator, admin: AdminDep, page_size: PageSize = 100, page_token: PageToken = None
) -> shapes.TokenListOut:
    """List access tokens, newest first. Without `admin` for all queues, you see the tokens that
    yours created.
    """
    place = unseal(caller, page_token, "tokens")
    before = None if place is None else read_id(place)
    rows = await admin.tokens.alist(before=before, count=page_size, parent=_parent(caller))
    more = str(rows[-1].id) if len(rows) == page_size else None
    return shapes.TokenListOut(
        tokens=[_token(row) for row in rows], next_page_token=seal(caller, more, "tokens")
    )


@router.post("/{token_id}:quota", description=_actions.QUOTA_TOKEN.summary)
async def quota(
    token_id: str, body: shapes.QuotaIn, caller: Administrator, admin: AdminDep
) -> ActionResult:
    """Replace one token's quotas over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    number = read_id(token_id)
    quotas = body.quotas
    if number == caller.id:
        quotas = narrower(quotas, caller.quotas)
    found = await admin.tokens.aquota(number, quotas, caller.by(body.reason))
    outcome = _actions.QUOTA_TOKEN.outcome(number, found)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return ActionResult(result=outcome.status)


@router.post("/{token_id}:revoke", description=_actions.REVOKE_TOKEN.summary)
async def revoke(
    token_id: str,
    caller: Administrator,
    admin: AdminDep,
    body: Annotated[shapes.RevokeTokenIn, Body(default_factory=shapes.RevokeTokenIn)],
) -> ActionResult:
    """Revoke one token over HTTP."""
    number = read_id(token_id)
    [revoked] = await admin.tokens.arevoke(
        [number],
        caller.by(body.reason),
        children=not body.keep_children,
        parent=_parent(caller),
    )
    outcome = _actions.REVOKE_TOKEN.outcome(number, revoked)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return ActionResult(result=outcome.status)


def _parent(caller: Caller) -> int | None:
    """Return the token whose descendants the caller may see, or None for all tokens."""
    return None if caller.may(Scope.ADMIN, EVERY_QUEUE) else caller.id


def _token(row: TokenRow) -> shapes.TokenOut:
    return shapes.TokenOut.of(
        row, scopes=row.grant.scopes, queues=row.grant.queues, tasks=row.grant.tasks
    )
