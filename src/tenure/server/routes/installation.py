"""Queues, workers, settings and the audit."""

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
    ReasonBody,
    RedactorDep,
    read_id,
)
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
# What a schedule's definition has of the payload of its jobs.
_PAYLOAD = frozenset({"args", "key", "meta"})


@router.get("/queues", tags=["queues"])
async def queues(caller: Reader, admin: AdminDep, request: Request) -> shapes.QueueListOut:
    """Every known queue: how much there is in it, and what operators have set for it. Counts are
    exact up to 10,000 each, and at most 10 s old, because all who ask share an answer."""
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
    """A queue; without a row and counts, one that is empty and has nothing set."""
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
    minutes: Annotated[int, Query(ge=1, le=1440)] = 30,
) -> shapes.ThroughputOut:
    """How many attempts completed and failed in each known queue, minute by minute; the first 500
    queues by name."""
    seen = [one.name for one in (await queues(caller, admin, request)).queues]
    found = await admin.queues.athroughput(seen[:_MOST_QUEUES], minutes=minutes)
    rows = [shapes.QueueThroughputOut.of(one, queue=name) for name, one in found.queues.items()]
    return shapes.ThroughputOut.of(found, queues=rows)


@router.post("/queues/{name:path}:pause", tags=["queues"], description=_actions.PAUSE_QUEUE.summary)
async def pause(
    name: str,
    caller: Operator,
    admin: AdminDep,
    asked: Annotated[shapes.PauseIn, Body(default_factory=shapes.PauseIn)],
) -> shapes.QueueOut:
    """Pause one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.queues.apause(name, by, until=asked.until))


@router.post(
    "/queues/{name:path}:resume", tags=["queues"], description=_actions.RESUME_QUEUE.summary
)
async def resume(name: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> shapes.QueueOut:
    """Resume one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    return _queue(await admin.queues.aresume(name, caller.by(why.reason)))


@router.post("/queues/{name:path}:limit", tags=["queues"], description=_actions.LIMIT_QUEUE.summary)
async def limit(
    name: str, asked: shapes.LimitIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Limit one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.queues.alimit(name, asked.max_running, by))


@router.post(
    "/queues/{name:path}:configure", tags=["queues"], description=_actions.CONFIGURE_QUEUE.summary
)
async def configure(
    name: str, asked: shapes.ConfigureIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Configure one queue over HTTP."""
    caller.must(Scope.OPERATE, name)
    lease = None if asked.lease is None else timedelta(seconds=asked.lease)
    row = await admin.queues.aconfigure(
        name, caller.by(asked.reason), lease=lease, max_attempts=asked.max_attempts
    )
    return _queue(row)


def _queue(row: QueueRow) -> shapes.QueueOut:
    return shapes.QueueOut.of(row)


@router.get("/workers", tags=["workers"])
async def workers(caller: Reader, admin: AdminDep) -> shapes.WorkerListOut:
    """All known workers that serve a queue of yours."""
    rows = await admin.workers.alist()
    return shapes.WorkerListOut(workers=[_worker(row) for row in rows if _serves(row, caller)])


def _serves(row: WorkerRow, caller: Caller) -> bool:
    return any(caller.may(Scope.READ, queue) for queue in row.queues)


def _worker(row: WorkerRow) -> shapes.WorkerOut:
    said = row.meta or {}
    return shapes.WorkerOut.of(
        row,
        health=health(row),
        blocked=said.get("blocked"),
        unknown_tasks=said.get("unknown_tasks", []),
        memory=said.get("memory"),
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
    """All settings as they are in force."""
    caller.must(Scope.READ, EVERY_QUEUE)
    rows = await admin.settings.alist()
    return shapes.SettingListOut(settings=[shapes.SettingOut.model_validate(row) for row in rows])


@router.put("/settings/{name}", tags=["settings"], description=_actions.SET_SETTING.summary)
async def set_setting(
    name: str, asked: shapes.SettingIn, caller: Administrator, admin: AdminDep
) -> ActionResult:
    """Set one setting over HTTP."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.settings.aset(name, asked.value, caller.by(asked.reason))
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
    admin: AdminDep,
    hiding: RedactorDep,
    target: Annotated[
        str | None, Query(min_length=1, max_length=300, examples=["queue:mail"])
    ] = None,
    actor: Annotated[str | None, Query(max_length=200, description="A part of the name.")] = None,
    source: Annotated[str | None, Query(max_length=50, examples=["page", "http", "cli"])] = None,
    action: Annotated[
        str | None, Query(max_length=100, description="`queue.pause`, or `queue` for each of them.")
    ] = None,
    enqueued: Annotated[bool, Query(description="With the jobs that were enqueued.")] = True,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> shapes.AuditListOut:
    """What was done, newest first: to a target (`job:5`, `queue:mail`), by somebody, from
    somewhere. Some 100,000 rows are searched at a time, so that a page may come short. Without
    `payload:read` the arguments of schedules are left out."""
    caller.must(Scope.READ, EVERY_QUEUE)
    page = await admin.audit.asearch(
        target=target,
        actor=actor or None,
        source=source or None,
        action=action or None,
        enqueued=enqueued,
        count=page_size,
        before=None if page_token is None else read_id(page_token),
    )
    shown = caller.may(Scope.PAYLOAD_READ, EVERY_QUEUE)
    return shapes.AuditListOut(
        changes=[_change(row, hiding, shown=shown) for row in page.rows],
        searched=page.searched,
        next_page_token=None if page.next is None else str(page.next),
    )


def _change(row: AuditRow, hiding: Redactor, *, shown: bool) -> shapes.AuditOut:
    def told(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        rest = {name: each for name, each in value.items() if name not in _PAYLOAD}
        payload = {name: each for name, each in value.items() if name in _PAYLOAD}
        return rest | hiding.value(payload) if shown else rest

    return shapes.AuditOut.of(row, before=told(row.before), after=told(row.after))
