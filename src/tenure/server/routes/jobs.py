"""Jobs: enqueued, listed, shown, and what an operator does to one."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tenure import _actions
from tenure._actions import Action, Outcome
from tenure.admin import Admin, JobRequest, Redactor, State, parse_selector
from tenure.server import serializers
from tenure.server.auth import Caller, Enqueuer, Operator, Reader
from tenure.server.dependencies import (
    AdminDep,
    IdempotencyKey,
    PageSize,
    PageToken,
    ReasonBody,
    RedactorDep,
    Traced,
    read_id,
    seen_job,
)
from tenure.server.problems import ProblemError
from tenure.server.schemas import jobs as shapes
from tenure.server.schemas.base import ActionResult, Name, Reason, SelectorText
from tenure.types import EVERY_QUEUE, JobRow, Scope, Selector

router: APIRouter = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post("", status_code=201)
async def enqueue(
    asked: shapes.JobIn,
    caller: Enqueuer,
    admin: AdminDep,
    trace: Traced,
    key: IdempotencyKey = None,
) -> shapes.EnqueuedOut:
    """Enqueue a job of a task by its name."""
    answer = await _enqueue([asked], caller, admin, trace, key)
    return answer.jobs[0]


@router.post(":batch", status_code=201)
async def enqueue_many(
    asked: shapes.JobsIn,
    caller: Enqueuer,
    admin: AdminDep,
    trace: Traced,
    key: IdempotencyKey = None,
) -> shapes.JobsEnqueuedOut:
    """Enqueue up to 1,000 jobs: all of them, or none."""
    return await _enqueue(asked.jobs, caller, admin, trace, key)


async def _enqueue(
    asked: list[shapes.JobIn], caller: Enqueuer, admin: AdminDep, trace: Traced, key: str | None
) -> shapes.JobsEnqueuedOut:
    for job in asked:
        caller.must(Scope.ENQUEUE, job.queue)
    requests = [JobRequest(**job.model_dump()) for job in asked]
    answer = await admin.jobs.aenqueue_many(
        requests, caller.by(None), idempotency_key=key, notes=trace
    )
    return shapes.JobsEnqueuedOut(
        jobs=[shapes.EnqueuedOut.of(one) for one in answer.jobs],
        repeated=answer.repeated,
    )


@router.get("")
async def list_jobs(
    caller: Reader,
    admin: AdminDep,
    hiding: RedactorDep,
    state: Annotated[State | None, Query()] = None,
    queue: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    selector: Annotated[SelectorText | None, Query(alias="filter")] = None,
    widen: Annotated[int, Query(ge=0, le=2, description="Search more rows per page.")] = 0,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> shapes.JobListOut:
    """Jobs in one state, or those that a filter selects; newest first. What is searched per page is
    bounded, so that a page may come short."""
    if queue is not None:
        caller.must(Scope.READ, queue)
    if selector is not None and (state, queue, task) != (None, None, None):
        raise ProblemError("invalid", "say state, queue and task in the filter, as in state:failed")
    if state is not None:
        page = await admin.jobs.alist(
            state, queue=queue, task=task, count=page_size, after=page_token
        )
        rows, more, search = page.jobs, page.next, None
    else:
        of = Selector(queue=() if queue is None else (queue,), task=() if task is None else (task,))
        meant = of if selector is None else parse_selector(selector)
        caller.must_for(Scope.READ, meant)
        found = await admin.jobs.asearch(meant, count=page_size, after=page_token, widen=widen)
        rows, more, search = found.jobs, found.next, shapes.SearchOut.of(found)
    seen = [row for row in rows if caller.may(Scope.READ, row.queue)]
    return shapes.JobListOut(
        jobs=await _told(seen, caller, admin, hiding), next_page_token=more, search=search
    )


@router.get("/{job_id}")
async def show(job_id: str, caller: Reader, admin: AdminDep, hiding: RedactorDep) -> shapes.JobOut:
    """A job as it is now, wherever it is."""
    row = await seen_job(admin, job_id, caller, Scope.READ)
    [job] = await _told([row], caller, admin, hiding)
    return job


async def _told(
    rows: Sequence[JobRow], caller: Caller, admin: Admin, hiding: Redactor
) -> list[shapes.JobOut]:
    failing = serializers.failing(rows)
    last = {one.job_id: one for one in await admin.jobs.alast_attempts(failing)} if failing else {}
    return [serializers.job(row, caller, hiding, last.get(row.id)) for row in rows]


@router.get("/{job_id}/attempts")
async def attempts(
    job_id: str, caller: Reader, admin: AdminDep, hiding: RedactorDep
) -> shapes.AttemptListOut:
    """The job's ended running periods, oldest first."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    rows = await admin.jobs.aattempts(job.id)
    return shapes.AttemptListOut(
        attempts=[serializers.attempt(row, job, caller, hiding) for row in rows]
    )


@router.get("/{job_id}/items")
async def items(
    job_id: str,
    caller: Reader,
    admin: AdminDep,
    hiding: RedactorDep,
    after: Annotated[str, Query(max_length=400)] = "",
    page_size: PageSize = 100,
) -> shapes.ItemListOut:
    """The job's result items, by key."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    caller.must(Scope.PAYLOAD_READ, job.queue)
    found = await admin.jobs.aitems(job.id, after=after, count=page_size)
    return shapes.ItemListOut(items=hiding.items(found))


@router.get("/{job_id}/operations")
async def operations(
    job_id: str, caller: Reader, admin: AdminDep, page_size: PageSize = 50
) -> shapes.MembershipListOut:
    """The last operations that the job is or was a member of; those of queues that you may see."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    found = await admin.operations.aof(job.id, count=page_size)
    return shapes.MembershipListOut(
        operations=[
            shapes.MembershipOut.of(
                one.operation, operation_id=one.operation.id, outcome=one.outcome
            )
            for one in found
            if caller.may(Scope.READ, one.operation.filter.queue or EVERY_QUEUE)
        ]
    )


async def act(
    action: Action, job_id: str, caller: Caller, admin: Admin, reason: str | None, **changes: Any
) -> Outcome:
    """Act on one job; `wrong-state` with the action's own sentence if it is refused."""
    # Which queue the job is in matters only to a caller who may not operate every queue.
    scope = Scope(action.scope)
    if not caller.may(scope):
        await seen_job(admin, job_id, caller, scope)
    number, command = read_id(job_id), getattr(admin.jobs, f"a{action.name}")
    [result] = await command([number], caller.by(reason), **changes)
    outcome = action.outcome(number, result)
    if outcome.is_refusal:
        await seen_job(admin, job_id, caller, scope)  # There may be no such job.
        raise ProblemError("wrong-state", outcome.sentence)
    return outcome


def _add_route(action: Action) -> None:
    async def route(
        job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody
    ) -> ActionResult:
        outcome = await act(action, job_id, caller, admin, why.reason)
        return ActionResult(result=outcome.status)

    path = f"/{{job_id}}:{action.name}"
    router.post(path, name=action.name, description=action.summary)(route)


for _action in (_actions.RETRY, _actions.CANCEL, _actions.REVOKE, _actions.HOLD, _actions.RESUME):
    _add_route(_action)


@router.post("/{job_id}:move", name="move", description=_actions.MOVE.summary)
async def move_route(
    job_id: str, asked: shapes.MoveIn, caller: Operator, admin: AdminDep
) -> ActionResult:
    """Move one job over HTTP."""
    return ActionResult(result=(await move(job_id, asked, caller, admin)).status)


async def move(job_id: str, asked: shapes.MoveIn, caller: Caller, admin: Admin) -> Outcome:
    """Move one job, if the caller may operate its queue and the one that it goes to."""
    if asked.queue is not None:
        caller.must(Scope.OPERATE, asked.queue)
    changes = asked.model_dump(exclude={"reason"})
    return await act(_actions.MOVE, job_id, caller, admin, asked.reason, **changes)


@router.delete("/{job_id}", name="delete", description=_actions.DELETE.summary)
async def delete(
    job_id: str, caller: Operator, admin: AdminDep, reason: Annotated[Reason, Query()] = None
) -> ActionResult:
    """Delete one job over HTTP."""
    outcome = await act(_actions.DELETE, job_id, caller, admin, reason)
    return ActionResult(result=outcome.status)
