"""Job routes: enqueue, list, show, and act on one."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query

from tenure import _actions
from tenure._actions import Action, Outcome
from tenure.admin import Admin, JobRequest, Redactor, State, parse_selector
from tenure.kinds import KINDS
from tenure.server import serializers
from tenure.server.auth import Caller, Enqueuer, Operator, Reader
from tenure.server.dependencies import (
    AdminDep,
    IdempotencyKey,
    PageSize,
    PageToken,
    QuotasDep,
    ReasonBody,
    RedactorDep,
    SearchDep,
    Traced,
    read_id,
    seen_job,
)
from tenure.server.off_loop import off_loop
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.quotas import QuotaKeeper
from tenure.server.schemas import jobs as shapes
from tenure.server.schemas.base import ActionResult, Name, Reason, SelectorText
from tenure.types import EVERY_QUEUE, JobRow, Scope, Selector

router: APIRouter = APIRouter(prefix="/v1/jobs", tags=["jobs"])
# The size limit for a payload field in a list, in bytes of JSON. A list of 200 jobs with fields
# this large is still fast.
_LARGEST_LISTED = 8 * 1024
# The size limit for arguments that are read to find secrets in an error. If they are larger, the
# error message is hidden.
LARGEST_QUOTED = 64 * 1024


@router.post("", status_code=201)
async def enqueue(
    body: shapes.JobIn,
    caller: Enqueuer,
    admin: AdminDep,
    quotas: QuotasDep,
    trace: Traced,
    key: IdempotencyKey = None,
) -> shapes.EnqueuedOut:
    """Enqueue one job."""
    answer = await _enqueue([body], caller, admin, quotas, trace, key)
    return answer.jobs[0]


@router.post(":batch", status_code=201)
async def enqueue_many(
    body: shapes.JobsIn,
    caller: Enqueuer,
    admin: AdminDep,
    quotas: QuotasDep,
    trace: Traced,
    key: IdempotencyKey = None,
) -> shapes.JobsEnqueuedOut:
    """Enqueue up to 1,000 jobs in one transaction: all or none."""
    return await _enqueue(body.jobs, caller, admin, quotas, trace, key)


async def _enqueue(
    body: list[shapes.JobIn],
    caller: Caller,
    admin: Admin,
    quotas: QuotaKeeper,
    trace: dict[str, str],
    key: str | None,
) -> shapes.JobsEnqueuedOut:
    for job in body:
        caller.must(Scope.ENQUEUE, job.queue)
        caller.must_task(job.task)
    await quotas.check_enqueue(caller, body)
    requests = [JobRequest(**job.model_dump(exclude=set(KINDS))) for job in body]
    answer = await admin.jobs.aenqueue_many(
        requests,
        caller.by(None),
        idempotency_key=key,
        notes=trace,
        patterns=caller.patterns,
    )
    return shapes.JobsEnqueuedOut(
        jobs=[shapes.EnqueuedOut.of(one) for one in answer.jobs],
        repeated=answer.repeated,
    )


@router.get("")
async def list_jobs(
    caller: Reader,
    admin: SearchDep,
    hiding: RedactorDep,
    state: Annotated[State | None, Query()] = None,
    queue: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    selector: Annotated[SelectorText | None, Query(alias="filter")] = None,
    widen: Annotated[
        int, Query(ge=0, le=2, description="Search more rows per page: 0, 1 or 2.")
    ] = 0,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> shapes.JobListOut:
    """List jobs, newest first: either those in one state, or those that match `filter`. To use
    `key:`, `error:` or `args` in a filter, you need the `payload:read` scope. Each page searches a
    limited number of rows, so a short page isn't necessarily the last one. Arguments, results,
    cursors and progress above 8 KiB are `null` in a list. To see them, get the job.
    """
    return await find(
        caller,
        admin,
        hiding,
        state=state,
        queue=queue,
        task=task,
        selector=selector,
        widen=widen,
        page_size=page_size,
        page_token=page_token,
        largest=_LARGEST_LISTED,
    )


async def find(
    caller: Caller,
    admin: Admin,
    hiding: Redactor,
    *,
    state: State | None = None,
    queue: str | None = None,
    task: str | None = None,
    selector: str | None = None,
    widen: int = 0,
    page_size: int = 50,
    page_token: str | None = None,
    largest: int | None = None,
) -> shapes.JobListOut:
    """Find the jobs for a list. Payload fields above `largest` bytes of JSON aren't even read."""
    if queue is not None:
        caller.must(Scope.READ, queue)
    if selector is not None and (state, queue, task) != (None, None, None):
        raise ProblemError(
            "invalid",
            "use either filter, or state, queue and task. In a filter, write state:failed",
        )
    of = "jobs", state, queue, task, selector
    after = unseal(caller, page_token, *of)
    if not {Scope.PAYLOAD_READ, Scope.ADMIN} & set(caller.grant.scopes):
        largest = 0
    if state is not None:
        page = await admin.jobs.alist(
            state,
            queue=queue,
            task=task,
            count=page_size,
            after=after,
            patterns=caller.patterns,
            largest=largest,
        )
        rows, more, search = page.jobs, page.next, None
    else:
        named = Selector(
            queue=() if queue is None else (queue,), task=() if task is None else (task,)
        )
        parsed = named if selector is None else parse_selector(selector)
        caller.must_for(Scope.READ, parsed)
        result = await admin.jobs.asearch(
            parsed,
            count=page_size,
            after=after,
            widen=widen,
            patterns=caller.patterns,
            largest=largest,
        )
        rows, more, search = result.jobs, result.next, shapes.SearchOut.of(result)
    seen = [row for row in rows if caller.may(Scope.READ, row.queue)]
    if search is not None and caller.patterns is not None:
        # The rows that were searched include those of other queues.
        update = {"searched": len(seen), "bounded": more is not None}
        search = search.model_copy(update=update)
    for name in {row.queue for row in seen}:
        caller.reads_payload(f"queue:{name}", name)
    return shapes.JobListOut(
        jobs=await _serialized(seen, caller, admin, hiding, whole=largest is None),
        next_page_token=seal(caller, more, *of),
        search=search,
    )


@router.get("/{job_id}")
async def show(job_id: str, caller: Reader, admin: AdminDep, hiding: RedactorDep) -> shapes.JobOut:
    """Get a job."""
    row = await seen_job(admin, job_id, caller, Scope.READ)
    caller.reads_payload(f"job:{row.id}", row.queue)
    [job] = await _serialized([row], caller, admin, hiding)
    return job


async def _serialized(
    rows: Sequence[JobRow], caller: Caller, admin: Admin, hiding: Redactor, *, whole: bool = True
) -> list[shapes.JobOut]:
    """Serialize jobs with their last errors.

    Unless the jobs are `whole`, read again the payloads that their errors may quote.
    """
    failing = serializers.failing(rows)
    last = {one.job_id: one for one in await admin.jobs.alast_attempts(failing)} if failing else {}
    of: dict[int, JobRow] = {}
    if not whole and (quoting := [one.job_id for one in last.values() if one.error_message]):
        jobs = await admin.jobs.aget_many(quoting, largest=LARGEST_QUOTED)
        of = {job.id: job for job in jobs}
    return await off_loop(
        lambda: [
            serializers.job(row, caller, hiding, last.get(row.id), of.get(row.id)) for row in rows
        ]
    )


@router.get("/{job_id}/attempts")
async def attempts(
    job_id: str, caller: Reader, admin: AdminDep, hiding: RedactorDep
) -> shapes.AttemptListOut:
    """List a job's ended attempts, oldest first."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    caller.reads_payload(f"job:{job.id}", job.queue)
    rows = await admin.jobs.aattempts(job.id)
    return shapes.AttemptListOut(
        attempts=await off_loop(
            lambda: [serializers.attempt(row, job, caller, hiding) for row in rows]
        )
    )


@router.get("/{job_id}/items")
async def items(
    job_id: str,
    caller: Reader,
    admin: AdminDep,
    hiding: RedactorDep,
    after: Annotated[str, Query(max_length=400, description="List items after this key.")] = "",
    page_size: PageSize = 100,
) -> shapes.ItemListOut:
    """List a job's items by key. Also needs `payload:read`."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    caller.must(Scope.PAYLOAD_READ, job.queue)
    caller.reads_payload(f"job:{job.id}", job.queue)
    rows = await admin.jobs.aitems(job.id, after=after, count=page_size)
    return shapes.ItemListOut(items=await off_loop(lambda: hiding.items(rows, of=job)))


@router.get("/{job_id}/operations")
async def operations(
    job_id: str, caller: Reader, admin: AdminDep, page_size: PageSize = 50
) -> shapes.MembershipListOut:
    """List the latest operations that included a job."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    rows = await admin.operations.aof(job.id, count=page_size)
    return shapes.MembershipListOut(
        operations=[
            shapes.MembershipOut.of(
                one.operation, operation_id=one.operation.id, outcome=one.outcome
            )
            for one in rows
            if caller.may(Scope.READ, one.operation.filter.queue or EVERY_QUEUE)
        ]
    )


async def act(
    action: Action, job_id: str, caller: Caller, admin: Admin, reason: str | None, **changes: Any
) -> Outcome:
    """Act on one job. A refused action fails with `wrong-state` and the action's message."""
    # The job's queue matters only if there are queues that the caller may not operate.
    scope = Scope(action.scope)
    if not caller.may(scope):
        await seen_job(admin, job_id, caller, scope)
    number, command = read_id(job_id), getattr(admin.jobs, f"a{action.name}")
    [result] = await command([number], caller.by(reason), **changes)
    outcome = action.outcome(number, result)
    if outcome.is_refusal:
        await seen_job(admin, job_id, caller, scope)  # Respond with 404 if the job doesn't exist.
        if outcome.holder is not None and not caller.may(Scope.READ):
            holder = await admin.jobs.aget(outcome.holder)
            if holder is None or not caller.may(Scope.READ, holder.queue):
                raise ProblemError(
                    "key-held-elsewhere",
                    f"a job that you may not see holds the key of job {number}",
                )
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


for _action in (_actions.CANCEL, _actions.REVOKE, _actions.HOLD, _actions.RESUME):
    _add_route(_action)


@router.post("/{job_id}:retry", name="retry", description=_actions.RETRY.summary)
async def retry_route(
    job_id: str,
    caller: Operator,
    admin: AdminDep,
    quotas: QuotasDep,
    body: Annotated[shapes.RetryIn, Body(default_factory=shapes.RetryIn)],
) -> ActionResult:
    """Retry one dead letter over HTTP."""
    return ActionResult(result=(await retry(job_id, body, caller, admin, quotas)).status)


async def retry(
    job_id: str, body: shapes.RetryIn, caller: Caller, admin: Admin, quotas: QuotaKeeper
) -> Outcome:
    """Retry one dead letter, with other arguments if the caller may enqueue them."""
    changes = {} if body.args is None else {"args": body.args}
    if body.args is not None:
        await _check_args(job_id, body.args, caller, admin, quotas)
    return await act(_actions.RETRY, job_id, caller, admin, body.reason, **changes)


@router.patch("/{job_id}", name="edit", description=_actions.EDIT.summary)
async def edit_route(
    job_id: str, body: shapes.EditIn, caller: Operator, admin: AdminDep, quotas: QuotasDep
) -> ActionResult:
    """Edit one job over HTTP."""
    return ActionResult(result=(await edit(job_id, body, caller, admin, quotas)).status)


async def edit(
    job_id: str, body: shapes.EditIn, caller: Caller, admin: Admin, quotas: QuotaKeeper
) -> Outcome:
    """Edit one job. For other arguments, the caller must be allowed to enqueue them."""
    if body.args is not None:
        await _check_args(job_id, body.args, caller, admin, quotas)
    changes = body.model_dump(exclude={"reason"})
    return await act(_actions.EDIT, job_id, caller, admin, body.reason, **changes)


@router.post(
    "/{job_id}:rerun",
    status_code=201,
    name="rerun",
    description=_actions.RERUN.summary,
)
async def rerun_route(
    job_id: str,
    caller: Operator,
    admin: AdminDep,
    quotas: QuotasDep,
    body: Annotated[shapes.RerunIn, Body(default_factory=shapes.RerunIn)],
) -> shapes.RerunOut:
    """Run one ended job again over HTTP."""
    outcome = await rerun(job_id, body, caller, admin, quotas)
    return shapes.RerunOut.of(outcome, result=outcome.status, id=outcome.job)


async def rerun(
    job_id: str, body: shapes.RerunIn, caller: Caller, admin: Admin, quotas: QuotaKeeper
) -> Outcome:
    """Run one ended job again, if the caller may enqueue it."""
    await _check_args(job_id, body.args, caller, admin, quotas, is_new=True)
    changes = body.model_dump(exclude={"reason"})
    return await act(_actions.RERUN, job_id, caller, admin, body.reason, **changes)


async def _check_args(
    job_id: str,
    args: dict[str, Any] | None,
    caller: Caller,
    admin: Admin,
    quotas: QuotaKeeper,
    *,
    is_new: bool = False,
) -> None:
    """Refuse arguments that the caller could not enqueue, by scope, task or quota.

    The arguments decide what a job does, so setting them needs the right to create the job.
    """
    row = await seen_job(admin, job_id, caller, Scope.OPERATE)
    caller.must(Scope.ENQUEUE, row.queue)
    caller.must_task(row.task)
    if is_new:
        quotas.check_names(caller, [row.queue])
        await quotas.check_jobs(caller, [(row.queue, row.args if args is None else args)])
    else:
        await quotas.check_payload(caller, row.queue, args)


@router.post("/{job_id}:move", name="move", description=_actions.MOVE.summary)
async def move_route(
    job_id: str, body: shapes.MoveIn, caller: Operator, admin: AdminDep
) -> ActionResult:
    """Move one job over HTTP."""
    return ActionResult(result=(await move(job_id, body, caller, admin)).status)


async def move(job_id: str, body: shapes.MoveIn, caller: Caller, admin: Admin) -> Outcome:
    """Move one job, if the caller may operate both queues."""
    if body.queue is not None:
        caller.must(Scope.OPERATE, body.queue)
    changes = body.model_dump(exclude={"reason"})
    return await act(_actions.MOVE, job_id, caller, admin, body.reason, **changes)


@router.delete("/{job_id}", name="delete", description=_actions.DELETE.summary)
async def delete(
    job_id: str, caller: Operator, admin: AdminDep, reason: Annotated[Reason, Query()] = None
) -> ActionResult:
    """Delete one job over HTTP."""
    outcome = await act(_actions.DELETE, job_id, caller, admin, reason)
    return ActionResult(result=outcome.status)
