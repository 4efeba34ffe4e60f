"""Access tokens: made, listed, revoked. Nobody gives away more than they have."""

from fastapi import APIRouter

from tenure.admin import covers
from tenure.server.auth import Administrator
from tenure.server.dependencies import AdminDep, PageSize, PageToken, ReasonBody, read_id
from tenure.server.problems import ProblemError
from tenure.server.schemas import installation as shapes
from tenure.server.schemas.base import DoneOut
from tenure.types import EVERY_QUEUE, Grant, Scope, TokenRow

router: APIRouter = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.post("", status_code=201)
async def create(
    asked: shapes.TokenIn, caller: Administrator, admin: AdminDep
) -> shapes.TokenCreatedOut:
    """Make an access token; its secret is told by this answer alone."""
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


@router.post("/{token_id}:revoke")
async def revoke(token_id: str, caller: Administrator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Let an access token in no more, for good."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    [revoked] = await admin.tokens.arevoke([read_id(token_id)], caller.by(why.reason))
    if not revoked:
        raise ProblemError("not-found", "there is no such access token, or it was revoked before")
    return DoneOut(answer="revoked")


def _token(row: TokenRow) -> shapes.TokenOut:
    own = {"id", "scopes", "queues"}
    names = shapes.TokenOut.model_fields.keys() - own
    return shapes.TokenOut(
        id=str(row.id),
        scopes=list(row.grant.scopes),
        queues=list(row.grant.queues),
        **{name: getattr(row, name) for name in names},
    )
