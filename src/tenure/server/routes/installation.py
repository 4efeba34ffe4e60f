"""Routes for queues, workers, settings and the audit log."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Query, Request

from tenure import _actions
from tenure.admin import Redactor, health
from tenure.server.auth import Administrator, Caller, Operator, Reader
from tenure.server.dependencies import (
    AdminDep,
    PageSize,
    PageToken,
    QuotasDep,
    ReasonBody,
    RedactorDep,
    SearchDep,
    read_id,
)
from tenure.server.off_loop import off_loop
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.schemas import installation as shapes
from tenure.server.schemas.base import ActionResult
from tenure.server.schemas.stats import CountOut
from tenure.types import EVERY_QUEUE, AuditRow, Count, Depth, QueueRow, Scope, WorkerRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.server.cache import SingleFlightCache

router: APIRouter = APIRouter(prefix="/v1")
_MOST_QUEUES = 500
# Schedule fields that are part of its jobs' payload.
_PAYLOAD = frozenset({"args", "key", "meta"})


@router.get("/queues", tags=["queues"])
async def queues(caller: Reader, admin: AdminDep, request: Request) -> shapes.QueueListOut:
    """List all queues with their job counts and settings. Counts go up to 10,000 and are at most 10
    s old.
    """
    shared: SingleFlightCache[Sequence[Depth]] = request.app.state.depths
    depths = {depth.queue: depth for depth in await shared.get()}
    rows = {row.name: row for row in await admin.queues.alist() if caller.may(Scope.READ, row.name)}
    every = rows.pop(EVERY_QUEUE, None)
    names = sorted({*rows, *(name for name in depths if caller.may(Scope.READ, name))})
    return shapes.QueueListOut(
        queues=[counted(name, rows.get(name), depths.get(name)) for name in names],
        every_queue=None if every is None else _queue(every),
    )


def counted(
    name: str, row: QueueRow | None = None, depth: Depth | None = None
) -> shapes.CountedQueueOut:
    """Build a queue's model. It's empty if the queue has no row and no counts."""
    none = Count(0)
    depth = depth or Depth(name, none, none, none, none, none, None)
    age = depth.oldest_due_age
    fields: dict[str, Any] = _queue(row or QueueRow(name)).model_dump()
    for count in ("due", "scheduled", "running", "held", "failed"):
        fields[count] = CountOut.model_validate(getattr(depth, count))
    return shapes.CountedQueueOut(
        **fields,
        backlog=depth.due.value,
        oldest_due_age=None if age is None else age.total_seconds(),
    )


@router.get("/queues/throughput", tags=["queues"])
async def throughput(
    caller: Reader,
    admin: AdminDep,
    request: Request,
    minutes: Annotated[int, Query(ge=1, le=1440, description="How many minutes.")] = 30,
) -> shapes.ThroughputOut:
    """Count each queue's completed and failed attempts per minute. Includes the first 500 queues by
    name.
    """
    seen = [one.name for one in (await queues(caller, admin, request)).queues]
    result = await admin.queues.athroughput(seen[:_MOST_QUEUES], minutes=minutes)
    rows = [shapes.QueueThroughputOut.of(one, queue=name) for name, one in result.queues.items()]
    return shapes.ThroughputOut.of(result, queues=rows)


@router.post("/queues/{name:path}:pause", tags=["queues"], description=_actions.PAUSE_QUEUE.summary)
async def pause(
    name: str,
    caller: Operator,
    admin: AdminDep,
    body: Annotated[shapes.PauseIn, Body(default_factory=shapes.PauseIn)],
) -> shapes.QueueOut:
    """Pause one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(body.reason)
    return _queue(await admin.queues.apause(name, by, until=body.until))


@router.post(
    "/queues/{name:path}:resume", tags=["queues"], description=_actions.RESUME_QUEUE.summary
)
async def resume(name: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> shapes.QueueOut:
    """Resume one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    return _queue(await admin.queues.aresume(name, caller.by(why.reason)))


@router.post("/queues/{name:path}:limit", tags=["queues"], description=_actions.LIMIT_QUEUE.summary)
async def limit(
    name: str, body: shapes.LimitIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Limit one queue's concurrency over HTTP."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(body.reason)
    return _queue(await admin.queues.alimit(name, body.max_running, by))


@router.post(
    "/queues/{name:path}:configure", tags=["queues"], description=_actions.CONFIGURE_QUEUE.summary
)
async def configure(
    name: str, body: shapes.ConfigureIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Configure one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    lease = None if body.lease is None else timedelta(seconds=body.lease)
    row = await admin.queues.aconfigure(
        name, caller.by(body.reason), lease=lease, max_attempts=body.max_attempts
    )
    return _queue(row)


@router.post("/queues/{name:path}:quota", tags=["queues"], description=_actions.QUOTA_QUEUE.summary)
async def quota(
    name: str, body: shapes.QuotaIn, caller: Administrator, admin: AdminDep, quotas: QuotasDep
) -> shapes.QueueOut:
    """Replace one queue's quotas over HTTP. Needs `admin` for all queues."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    row = await admin.queues.aquota(name, body.quotas, caller.by(body.reason))
    quotas.forget_queues()
    return _queue(row)


def _queue(row: QueueRow) -> shapes.QueueOut:
    return shapes.QueueOut.of(row)


@router.get("/workers", tags=["workers"])
async def workers(caller: Reader, admin: AdminDep) -> shapes.WorkerListOut:
    """List the workers that serve your queues."""
    rows = await admin.workers.alist()
    return shapes.WorkerListOut(
        workers=[_worker(row, caller) for row in rows if _serves(row, caller)]
    )


def _serves(row: WorkerRow, caller: Caller) -> bool:
    return any(caller.may(Scope.READ, queue) for queue in row.queues)


def _worker(row: WorkerRow, caller: Caller) -> shapes.WorkerOut:
    """Serialize a worker, without the queues that the caller may not see or its work there."""
    meta = row.meta or {}
    queues = [queue for queue in row.queues if caller.may(Scope.READ, queue)]
    blocked = meta.get("blocked")
    if blocked is not None and not all(caller.may(Scope.PAYLOAD_READ, q) for q in row.queues):
        blocked = {**blocked, "stack": "hidden: needs payload:read for all queues of the worker"}
    return shapes.WorkerOut.of(
        row,
        queues=queues,
        health=health(row),
        blocked=blocked,
        unknown_tasks=meta.get("unknown_tasks", []) if len(queues) == len(row.queues) else [],
        memory=meta.get("memory"),
    )


@router.post(
    "/workers/{worker_id}:drain", tags=["workers"], description=_actions.DRAIN_WORKER.summary
)
async def drain(
    worker_id: UUID, caller: Operator, admin: AdminDep, why: ReasonBody
) -> ActionResult:
    """Drain one worker over HTTP."""
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    found = await admin.workers.adrain(worker_id, caller.by(why.reason))
    outcome = _actions.DRAIN_WORKER.outcome(worker_id, found)
    if outcome.is_refusal:
        raise ProblemError("not-found", outcome.sentence)
    return ActionResult(result=outcome.status)


@router.get("/settings", tags=["settings"])
async def settings(caller: Reader, admin: AdminDep) -> shapes.SettingListOut:
    """List all settings. Needs `read` for all queues."""
    caller.must(Scope.READ, EVERY_QUEUE)
    rows = await admin.settings.alist()
    return shapes.SettingListOut(settings=[shapes.SettingOut.model_validate(row) for row in rows])


@router.put("/settings/{name}", tags=["settings"], description=_actions.SET_SETTING.summary)
async def set_setting(
    name: str, body: shapes.SettingIn, caller: Administrator, admin: AdminDep
) -> ActionResult:
    """Set one setting over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.settings.aset(name, body.value, caller.by(body.reason))
    return ActionResult(result=_actions.SET_SETTING.status)


@router.delete("/settings/{name}", tags=["settings"], description=_actions.RESET_SETTING.summary)
async def reset_setting(name: str, caller: Administrator, admin: AdminDep) -> ActionResult:
    """Reset one setting over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.settings.areset(name, caller.by(None))
    return ActionResult(result=_actions.RESET_SETTING.status)


@router.get("/audit", tags=["audit"])
async def audit(
    caller: Reader,
    admin: SearchDep,
    hiding: RedactorDep,
    target: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=300,
            description="What was changed.",
            examples=["queue:mail"],
        ),
    ] = None,
    actor: Annotated[
        str | None, Query(max_length=200, description="Part of the name of the actor.")
    ] = None,
    source: Annotated[
        str | None,
        Query(max_length=50, description="`page`, `http`, `cli`, `python`, `code` or `server`."),
    ] = None,
    action: Annotated[
        str | None,
        Query(max_length=100, description="`queue.pause`, or `queue` for all actions on queues."),
    ] = None,
    enqueued: Annotated[bool, Query(description="Include enqueued jobs.")] = True,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> shapes.AuditListOut:
    """Search the audit log, newest first. Needs `read` for all queues. Each page searches up to
    100,000 rows, so a short page isn't necessarily the last one. You need `payload:read` to see
    schedule arguments.
    """
    caller.must(Scope.READ, EVERY_QUEUE)
    of = "audit", target, actor, source, action, enqueued
    place = unseal(caller, page_token, *of)
    page = await admin.audit.asearch(
        target=target,
        actor=actor or None,
        source=source or None,
        action=action or None,
        enqueued=enqueued,
        count=page_size,
        before=None if place is None else read_id(place),
    )
    shown = caller.may(Scope.PAYLOAD_READ, EVERY_QUEUE)
    return shapes.AuditListOut(
        changes=await off_loop(lambda: [_change(row, hiding, shown=shown) for row in page.rows]),
        searched=page.searched,
        next_page_token=seal(caller, None if page.next is None else str(page.next), *of),
    )


def _change(row: AuditRow, hiding: Redactor, *, shown: bool) -> shapes.AuditOut:
    known = hiding.values([row.before, row.after]) if shown else ()

    def shown_value(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        rest = {name: each for name, each in value.items() if name not in _PAYLOAD}
        payload = {name: each for name, each in value.items() if name in _PAYLOAD}
        return rest | hiding.value(payload, known) if shown else rest

    return shapes.AuditOut.of(row, before=shown_value(row.before), after=shown_value(row.after))
