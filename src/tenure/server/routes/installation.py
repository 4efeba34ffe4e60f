"""Queues, workers, settings and the audit."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Query

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
from tenure.server.schemas.base import DoneOut
from tenure.types import EVERY_QUEUE, AuditRow, QueueRow, Scope, WorkerRow

router: APIRouter = APIRouter(prefix="/v1")
# What a schedule's definition has of the payload of its jobs.
_PAYLOAD = frozenset({"args", "key", "meta"})


@router.get("/queues", tags=["queues"])
async def queues(caller: Reader, admin: AdminDep) -> shapes.QueueListOut:
    """The queues for which operators have set something."""
    rows = await admin.aqueues()
    seen = [_queue(row) for row in rows if caller.may(Scope.READ, row.name)]
    return shapes.QueueListOut(queues=seen)


@router.post("/queues/{name:path}:pause", tags=["queues"])
async def pause(
    name: str,
    caller: Operator,
    admin: AdminDep,
    asked: Annotated[shapes.PauseIn, Body(default_factory=shapes.PauseIn)],
) -> shapes.QueueOut:
    """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.apause_queue(name, by, until=asked.until))


@router.post("/queues/{name:path}:resume", tags=["queues"])
async def resume(name: str, caller: Operator, admin: AdminDep, why: ReasonBody) -> shapes.QueueOut:
    """Let a paused queue go on."""
    caller.must(Scope.OPERATE, name)
    return _queue(await admin.aresume_queue(name, caller.by(why.reason)))


@router.post("/queues/{name:path}:limit", tags=["queues"])
async def limit(
    name: str, asked: shapes.LimitIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Let at most so many jobs of a queue (`*`: of all) run at once."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.alimit_queue(name, asked.max_running, by))


@router.post("/queues/{name:path}:configure", tags=["queues"])
async def configure(
    name: str, asked: shapes.ConfigureIn, caller: Operator, admin: AdminDep
) -> shapes.QueueOut:
    """Give a queue its own lease and attempts."""
    caller.must(Scope.OPERATE, name)
    lease = None if asked.lease is None else timedelta(seconds=asked.lease)
    row = await admin.aconfigure_queue(
        name, caller.by(asked.reason), lease=lease, max_attempts=asked.max_attempts
    )
    return _queue(row)


def _queue(row: QueueRow) -> shapes.QueueOut:
    names = shapes.QueueOut.model_fields.keys() - {"lease"}
    return shapes.QueueOut(
        lease=None if row.lease is None else row.lease.total_seconds(),
        **{name: getattr(row, name) for name in names},
    )


@router.get("/workers", tags=["workers"])
async def workers(caller: Reader, admin: AdminDep) -> shapes.WorkerListOut:
    """All known workers that serve a queue of yours."""
    rows = await admin.aworkers()
    return shapes.WorkerListOut(workers=[_worker(row) for row in rows if _serves(row, caller)])


def _serves(row: WorkerRow, caller: Caller) -> bool:
    return any(caller.may(Scope.READ, queue) for queue in row.queues)


def _worker(row: WorkerRow) -> shapes.WorkerOut:
    said = row.meta or {}
    told = {"id", "queues", "beat_age", "health", "blocked", "unknown_tasks", "memory"}
    names = shapes.WorkerOut.model_fields.keys() - told
    return shapes.WorkerOut(
        id=str(row.id),
        queues=list(row.queues),
        beat_age=row.beat_age.total_seconds(),
        health=health(row),
        blocked=said.get("blocked"),
        unknown_tasks=said.get("unknown_tasks", []),
        memory=said.get("memory"),
        **{name: getattr(row, name) for name in names},
    )


@router.post("/workers/{worker_id}:drain", tags=["workers"])
async def drain(worker_id: UUID, caller: Operator, admin: AdminDep, why: ReasonBody) -> DoneOut:
    """Ask a worker to take no new job and to end."""
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    if not await admin.adrain(worker_id, caller.by(why.reason)):
        raise ProblemError("not-found", "there is no such worker")
    return DoneOut(answer="asked")


@router.get("/settings", tags=["settings"])
async def settings(caller: Reader, admin: AdminDep) -> shapes.SettingListOut:
    """All settings as they are in force."""
    caller.must(Scope.READ, EVERY_QUEUE)
    rows = await admin.asettings()
    return shapes.SettingListOut(settings=[shapes.SettingOut.model_validate(row) for row in rows])


@router.put("/settings/{name}", tags=["settings"])
async def set_setting(
    name: str, asked: shapes.SettingIn, caller: Administrator, admin: AdminDep
) -> DoneOut:
    """Change a setting for the whole installation."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.aset_setting(name, asked.value, caller.by(asked.reason))
    return DoneOut(answer="set")


@router.delete("/settings/{name}", tags=["settings"])
async def reset_setting(name: str, caller: Administrator, admin: AdminDep) -> DoneOut:
    """Take a setting back to its built-in value."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.areset_setting(name, caller.by(None))
    return DoneOut(answer="reset")


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
    page = await admin.asearch_audit(
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

    names = shapes.AuditOut.model_fields.keys() - {"id", "before", "after"}
    return shapes.AuditOut(
        id=str(row.id),
        before=told(row.before),
        after=told(row.after),
        **{name: getattr(row, name) for name in names},
    )
