"""Queues, workers, settings and the audit."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Query

from tenure.admin import EVERY_QUEUE, AuditRow, QueueRow, Scope, WorkerRow
from tenure.server.access import Administrator, Caller, Operator, Reader
from tenure.server.parts import PageSize, PageToken, Verbs, Why, read_id
from tenure.server.problems import Problem
from tenure.server.shapes import installation as shapes
from tenure.server.shapes.base import DoneOut

router: APIRouter = APIRouter(prefix="/v1")


@router.get("/queues", tags=["queues"])
async def queues(caller: Reader, admin: Verbs) -> shapes.QueueListOut:
    """The queues for which operators have set something."""
    rows = await admin.aqueues()
    seen = [_queue(row) for row in rows if caller.may(Scope.READ, row.name)]
    return shapes.QueueListOut(queues=seen)


@router.post("/queues/{name}:pause", tags=["queues"])
async def pause(
    name: str,
    caller: Operator,
    admin: Verbs,
    asked: Annotated[shapes.PauseIn, Body(default_factory=shapes.PauseIn)],
) -> shapes.QueueOut:
    """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.apause_queue(name, by, until=asked.until))


@router.post("/queues/{name}:resume", tags=["queues"])
async def resume(name: str, caller: Operator, admin: Verbs, why: Why) -> shapes.QueueOut:
    """Let a paused queue go on."""
    caller.must(Scope.OPERATE, name)
    return _queue(await admin.aresume_queue(name, caller.by(why.reason)))


@router.post("/queues/{name}:limit", tags=["queues"])
async def limit(
    name: str, asked: shapes.LimitIn, caller: Operator, admin: Verbs
) -> shapes.QueueOut:
    """Let at most so many jobs of a queue (`*`: of all) run at once."""
    caller.must(Scope.OPERATE, name)
    by = caller.by(asked.reason)
    return _queue(await admin.alimit_queue(name, asked.max_running, by))


@router.post("/queues/{name}:configure", tags=["queues"])
async def configure(
    name: str, asked: shapes.ConfigureIn, caller: Operator, admin: Verbs
) -> shapes.QueueOut:
    """Give a queue its own lease and attempts."""
    caller.must(Scope.OPERATE, name)
    lease = None if asked.lease is None else timedelta(seconds=asked.lease)
    row = await admin.aconfigure_queue(
        name, caller.by(asked.reason), lease=lease, max_attempts=asked.max_attempts
    )
    return _queue(row)


def _queue(row: QueueRow) -> shapes.QueueOut:
    return shapes.QueueOut.model_validate(row)


@router.get("/workers", tags=["workers"])
async def workers(caller: Reader, admin: Verbs) -> shapes.WorkerListOut:
    """All known workers that serve a queue of yours."""
    rows = await admin.aworkers()
    return shapes.WorkerListOut(workers=[_worker(row) for row in rows if _serves(row, caller)])


def _serves(row: WorkerRow, caller: Caller) -> bool:
    return any(caller.may(Scope.READ, queue) for queue in row.queues)


def _worker(row: WorkerRow) -> shapes.WorkerOut:
    names = shapes.WorkerOut.model_fields.keys() - {"id", "queues", "beat_age"}
    return shapes.WorkerOut(
        id=str(row.id),
        queues=list(row.queues),
        beat_age=row.beat_age.total_seconds(),
        **{name: getattr(row, name) for name in names},
    )


@router.post("/workers/{worker_id}:drain", tags=["workers"])
async def drain(worker_id: UUID, caller: Operator, admin: Verbs, why: Why) -> DoneOut:
    """Ask a worker to take no new job and to end."""
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    if not await admin.adrain(worker_id, caller.by(why.reason)):
        raise Problem("not-found", "there is no such worker")
    return DoneOut(answer="asked")


@router.get("/settings", tags=["settings"])
async def settings(caller: Reader, admin: Verbs) -> shapes.SettingListOut:
    """All settings as they are in force."""
    caller.must(Scope.READ, EVERY_QUEUE)
    rows = await admin.asettings()
    return shapes.SettingListOut(settings=[shapes.SettingOut.model_validate(row) for row in rows])


@router.put("/settings/{name}", tags=["settings"])
async def set_setting(
    name: str, asked: shapes.SettingIn, caller: Administrator, admin: Verbs
) -> DoneOut:
    """Change a setting for the whole installation."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.aset_setting(name, asked.value, caller.by(asked.reason))
    return DoneOut(answer="set")


@router.delete("/settings/{name}", tags=["settings"])
async def reset_setting(name: str, caller: Administrator, admin: Verbs) -> DoneOut:
    """Take a setting back to its built-in value."""
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    await admin.areset_setting(name, caller.by(None))
    return DoneOut(answer="reset")


@router.get("/audit", tags=["audit"])
async def audit(
    target: Annotated[str, Query(min_length=1, max_length=300, examples=["queue:mail"])],
    caller: Reader,
    admin: Verbs,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> shapes.AuditListOut:
    """What was done to a target (`job:5`, `queue:mail`), newest first."""
    caller.must(Scope.READ, EVERY_QUEUE)
    before = None if page_token is None else read_id(page_token)
    rows = await admin.aaudit(target, count=page_size, before=before)
    more = str(rows[-1].id) if len(rows) == page_size else None
    return shapes.AuditListOut(changes=[_change(row) for row in rows], next_page_token=more)


def _change(row: AuditRow) -> shapes.AuditOut:
    names = shapes.AuditOut.model_fields.keys() - {"id"}
    return shapes.AuditOut(id=str(row.id), **{name: getattr(row, name) for name in names})
