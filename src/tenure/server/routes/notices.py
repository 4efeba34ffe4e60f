"""Routes for the rules of notices."""

from fastapi import APIRouter

from tenure import _actions
from tenure.server.auth import Administrator
from tenure.server.dependencies import AdminDep, ReasonBody
from tenure.server.problems import ProblemError
from tenure.server.schemas import notices as shapes
from tenure.server.schemas.base import ActionResult
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter(prefix="/v1/notices", tags=["notices"])


@router.get("")
async def list_rules(caller: Administrator, admin: AdminDep) -> shapes.NoticeRuleListOut:
    """List the rules for notices, by name."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    rows = await admin.notices.alist()
    return shapes.NoticeRuleListOut(rules=[shapes.NoticeRuleOut.of(row) for row in rows])


@router.post("", status_code=201, description=_actions.ADD_NOTICE.summary)
async def add(
    caller: Administrator, admin: AdminDep, body: shapes.NoticeRuleIn
) -> shapes.NoticeRuleOut:
    """Add one rule over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    row = await admin.notices.aadd(
        body.name,
        body.event,
        caller.by(body.reason),
        secret=body.secret,
        url=body.url,
        queue=body.queue,
        task=body.task,
        format=body.format,
        group_for=body.group_for,
        threshold=body.threshold,
    )
    return shapes.NoticeRuleOut.of(row)


@router.post("/{name}:test", description=_actions.TEST_NOTICE.summary)
async def test(
    name: str, caller: Administrator, admin: AdminDep, why: ReasonBody
) -> shapes.NoticeTestOut:
    """Test one rule over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    job_id = await admin.notices.atest(name, caller.by(why.reason))
    if job_id is None:
        raise ProblemError("not-found", _actions.TEST_NOTICE.outcome(name, False, job="").sentence)
    return shapes.NoticeTestOut(result=_actions.TEST_NOTICE.status, job_id=str(job_id))


@router.post("/{name}:remove", description=_actions.REMOVE_NOTICE.summary)
async def remove(
    name: str, caller: Administrator, admin: AdminDep, why: ReasonBody
) -> ActionResult:
    """Remove one rule over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    [removed] = await admin.notices.aremove([name], caller.by(why.reason))
    outcome = _actions.REMOVE_NOTICE.outcome(name, removed)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return ActionResult(result=outcome.status)
