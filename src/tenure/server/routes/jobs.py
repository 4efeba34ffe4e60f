"""Jobs: enqueued, listed, shown, and what an operator does to one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

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
    seen_job,
)
from tenure.server.problems import ProblemError
from tenure.server.schemas import jobs as shapes
from tenure.server.schemas.base import DoneOut, Name, Reason, SelectorText
from tenure.types import (
    EVERY_QUEUE,
    CancelStatus,
    DeleteStatus,
    JobRow,
    RetryStatus,
    Scope,
    Selector,
)

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
    answer = await admin.aenqueue_many(requests, caller.by(None), idempotency_key=key, notes=trace)
    return shapes.JobsEnqueuedOut(
        jobs=[shapes.EnqueuedOut(id=str(one.id), created=one.created) for one in answer.jobs],
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
        page = await admin.ajobs(state, queue=queue, task=task, count=page_size, after=page_token)
        rows, more, search = page.jobs, page.next, None
    else:
        of = Selector(queue=() if queue is None else (queue,), task=() if task is None else (task,))
        meant = of if selector is None else parse_selector(selector)
        caller.must_for(Scope.READ, meant)
        found = await admin.asearch(meant, count=page_size, after=page_token, widen=widen)
        rows, more, search = found.jobs, found.next, serializers.search(found)
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
    last = {one.job_id: one for one in await admin.alast_attempts(failing)} if failing else {}
    return [serializers.job(row, caller, hiding, last.get(row.id)) for row in rows]


@router.get("/{job_id}/attempts")
async def attempts(
    job_id: str, caller: Reader, admin: AdminDep, hiding: RedactorDep
) -> shapes.AttemptListOut:
    """The job's ended running periods, oldest first."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    rows = await admin.aattempts(job.id)
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
    found = await admin.aitems(job.id, after=after, count=page_size)
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
            shapes.MembershipOut(
                operation_id=str(one.operation.id),
                kind=one.operation.kind,
                outcome=one.outcome,
                actor=one.operation.actor,
                source=one.operation.source,
                reason=one.operation.reason,
                created_at=one.operation.created_at,
            )
            for one in found
            if caller.may(Scope.READ, one.operation.filter.queue or EVERY_QUEUE)
        ]
    )


@router.post("/{job_id}:retry")
async def retry(job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Bring a dead letter back for a new life."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    [answer] = await admin.aretry([job.id], caller.by(why.reason))
    if answer.answer is not RetryStatus.RETRIED:
        raise ProblemError("wrong-state", "it is no dead letter, or a younger job has its key")
    return DoneOut(answer=answer.answer.value)


@router.post("/{job_id}:cancel")
async def cancel(job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """End a queued job at once; ask the holder of a running one to end it."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    [answer] = await admin.acancel([job.id], caller.by(why.reason))
    if answer is CancelStatus.NOT_LIVE:
        raise ProblemError("wrong-state", "the job has ended already")
    return DoneOut(answer=answer.value)


@router.post("/{job_id}:revoke")
async def revoke(job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Take a running job from its holder and end it."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    return _done(await admin.arevoke([job.id], caller.by(why.reason)), "revoked", "it does not run")


@router.post("/{job_id}:hold")
async def hold(job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Keep a queued job from being claimed."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    return _done(await admin.ahold([job.id], caller.by(why.reason)), "held", "it is not queued")


@router.post("/{job_id}:resume")
async def resume(job_id: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Let a held job go on, in its old place."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    return _done(await admin.aresume([job.id], caller.by(why.reason)), "resumed", "it is not held")


@router.post("/{job_id}:move")
async def move(job_id: str, asked: shapes.MoveIn, caller: Operator, admin: AdminDep) -> DoneOut:
    """Give a queued job another queue, priority or time."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    if asked.queue is not None:
        caller.must(Scope.OPERATE, asked.queue)
    moved = await admin.amove(
        [job.id],
        caller.by(asked.reason),
        queue=asked.queue,
        priority=asked.priority,
        run_at=asked.run_at,
    )
    return _done(moved, "moved", "it is not queued")


@router.delete("/{job_id}")
async def delete(
    job_id: str, caller: Operator, admin: AdminDep, reason: Annotated[Reason, Query()] = None
) -> DoneOut:
    """Delete an ended job for good."""
    job = await seen_job(admin, job_id, caller, Scope.OPERATE)
    [answer] = await admin.adelete([job.id], caller.by(reason))
    if answer is DeleteStatus.LIVE:
        raise ProblemError("wrong-state", "it has not ended; cancel it first")
    return DoneOut(answer=answer.value)


def _done(answers: Sequence[bool], done: str, why_not: str) -> DoneOut:
    if not all(answers):
        raise ProblemError("wrong-state", why_not)
    return DoneOut(answer=done)
