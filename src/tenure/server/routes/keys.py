"""Deduplication key routes."""

from fastapi import APIRouter

from tenure import _actions
from tenure.server.auth import Operator
from tenure.server.dependencies import AdminDep
from tenure.server.problems import ProblemError
from tenure.server.schemas import jobs as shapes
from tenure.server.schemas.base import ActionResult
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter(prefix="/v1/keys", tags=["keys"])


@router.post(":free", description=_actions.FREE_KEY.summary)
async def free(body: shapes.KeyIn, caller: Operator, admin: AdminDep) -> ActionResult:
    """Free one key over HTTP. Its job may be in any queue."""
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    result = await admin.keys.afree(body.task, body.key, caller.by(body.reason))
    outcome = _actions.FREE_KEY.outcome(body.key, result, task=body.task)
    if outcome.status == "not_found":
        raise ProblemError("not-found", outcome.sentence)
    if outcome.is_refusal:
        raise ProblemError("wrong-state", outcome.sentence)
    return ActionResult(result=outcome.status)
