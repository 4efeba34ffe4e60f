"""Schedules: made, changed, steered, and looked at, with their next runs and their past ones."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Query

from tenure.admin import Admin, Redactor, preview_timing
from tenure.errors import InvalidValue
from tenure.server import serializers
from tenure.server.auth import Caller, Operator, Reader
from tenure.server.dependencies import (
    AdminDep,
    IdempotencyKey,
    PageSize,
    PageToken,
    ReasonBody,
    RedactorDep,
)
from tenure.server.problems import ProblemError
from tenure.server.schemas import schedules as shapes
from tenure.server.schemas.base import ActionResult, Instant
from tenure.server.schemas.installation import PauseIn
from tenure.server.schemas.jobs import EnqueuedOut
from tenure.server.schemas.operations import OperationOut
from tenure.types import RecentRuns, ScheduleRow, Scope

router: APIRouter = APIRouter(prefix="/v1/schedules", tags=["schedules"])
_LOOKED_AT = 200
_NEXT, _PAST = 5, 10


@router.post("", status_code=201)
async def create(
    asked: shapes.ScheduleIn, caller: Operator, admin: AdminDep, hiding: RedactorDep
) -> shapes.ScheduleOut:
    """Make a schedule of a task by its name. It enqueues: that needs the scope `enqueue` too."""
    _must_steer(caller, asked.queue)
    said = asked.model_dump(exclude={"reason", "name", "task"})
    made = await admin.schedules.acreate(asked.name, asked.task, caller.by(asked.reason), **said)
    return serializers.schedule(made, caller, hiding)


@router.post(":preview")
async def preview(asked: shapes.PreviewIn, _caller: Reader) -> shapes.RunListOut:
    """The next runs of a timing that no schedule has yet, with what clock changes do to them."""
    runs = await asyncio.to_thread(preview_timing, **asked.model_dump())
    return shapes.RunListOut(runs=[shapes.RunOut.of(run) for run in runs])


@router.get("")
async def list_schedules(
    caller: Reader,
    admin: AdminDep,
    hiding: RedactorDep,
    page_size: PageSize = 50,
    page_token: PageToken = None,
    ticks: Annotated[int, Query(ge=0, le=50, description="Of each, its last ones.")] = 0,
) -> shapes.ScheduleListOut:
    """Schedules by name; those of queues that you may see. With `ticks`, what each came to."""
    seen: list[ScheduleRow] = []
    after, more = page_token or "", True
    # A place is the name of one that is shown: others' are nobody's business.
    while more and len(seen) <= page_size:
        rows = await admin.schedules.alist(after=after, count=_LOOKED_AT)
        seen += [row for row in rows if caller.may(Scope.READ, row.job.queue)]
        more = len(rows) == _LOOKED_AT
        after = rows[-1].name if rows else after
    page = seen[:page_size]
    names = [row.name for row in page]
    past = await admin.schedules.arecent_runs(names, ticks=ticks) if names and ticks else {}
    return shapes.ScheduleListOut(
        schedules=[_listed(row, past.get(row.name), caller, hiding) for row in page],
        next_page_token=page[-1].name if len(seen) > page_size else None,
    )


def _listed(
    row: ScheduleRow, past: RecentRuns | None, caller: Caller, hiding: Redactor
) -> shapes.ScheduleListedOut:
    return shapes.ScheduleListedOut(
        **dict(serializers.schedule(row, caller, hiding)),
        past_runs=[] if past is None else [shapes.TickOut.of(tick) for tick in past.ticks],
        last_state=None if past is None else past.state,
    )


# A name may have slashes and colons: what stands behind it is matched before it alone is.
@router.get("/{name:path}/runs")
async def runs(
    name: str,
    caller: Reader,
    admin: AdminDep,
    after: Instant | None = None,
    count: Annotated[int, Query(ge=1, le=100)] = 10,
) -> shapes.RunListOut:
    """The next runs of a schedule, after an instant or now."""
    row = await _seen(admin, name, caller, Scope.READ)
    found = await admin.schedules.apreview(row.name, count=count, after=after)
    return shapes.RunListOut(runs=[shapes.RunOut.of(run) for run in found])


@router.get("/{name:path}/ticks")
async def ticks(
    name: str,
    caller: Reader,
    admin: AdminDep,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> shapes.TickListOut:
    """The past runs of a schedule, newest first: the jobs they made, and those that were missed."""
    row = await _seen(admin, name, caller, Scope.READ)
    before = None if page_token is None else _instant(page_token)
    found = await admin.schedules.aticks(row.name, before=before, count=page_size)
    more = found[-1].fire_at.isoformat() if len(found) == page_size else None
    return shapes.TickListOut(
        ticks=[shapes.TickOut.of(tick) for tick in found], next_page_token=more
    )


@router.get("/{name:path}")
async def show(
    name: str, caller: Reader, admin: AdminDep, hiding: RedactorDep
) -> shapes.ScheduleShownOut:
    """A schedule as it is now, with its next runs and its last ones."""
    row = await _seen(admin, name, caller, Scope.READ)
    coming = await admin.schedules.apreview(row.name, count=_NEXT)
    past = await admin.schedules.aticks(row.name, count=_PAST)
    return shapes.ScheduleShownOut(
        **dict(serializers.schedule(row, caller, hiding)),
        next_runs=[shapes.RunOut.of(run) for run in coming],
        past_runs=[shapes.TickOut.of(tick) for tick in past],
    )


@router.patch("/{name:path}")
async def update(
    name: str,
    asked: shapes.ScheduleChangeIn,
    caller: Operator,
    admin: AdminDep,
    hiding: RedactorDep,
) -> shapes.ScheduleOut:
    """Change what is given, and leave the rest. What it enqueues, and where, needs the scope
    `enqueue` too."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    said = asked.model_dump(exclude={"reason"})
    if said["queue"] is not None or said["task"] is not None or said["args"] is not None:
        _must_steer(caller, asked.queue or row.job.queue)
    changed = await admin.schedules.aupdate(row.name, caller.by(asked.reason), **said)
    return serializers.schedule(changed, caller, hiding)


@router.delete("/{name:path}")
async def delete(name: str, caller: Operator, admin: AdminDep) -> ActionResult:
    """Remove a schedule that no code declares any more; its ticks and jobs stay."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    await admin.schedules.adelete(row.name, caller.by(None))
    return ActionResult(result="deleted")


@router.post("/{name:path}:pause")
async def pause(
    name: str,
    caller: Operator,
    admin: AdminDep,
    hiding: RedactorDep,
    asked: Annotated[PauseIn, Body(default_factory=PauseIn)],
) -> shapes.ScheduleOut:
    """Let ticks make no jobs, until then or until resumed; each is recorded as paused."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    by = caller.by(asked.reason)
    paused = await admin.schedules.apause(row.name, by, until=asked.until)
    return serializers.schedule(paused, caller, hiding)


@router.post("/{name:path}:resume")
async def resume(
    name: str, caller: Operator, admin: AdminDep, hiding: RedactorDep, why: ReasonBody
) -> shapes.ScheduleOut:
    """Let a paused schedule's ticks make jobs again, from the next one on."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    resumed = await admin.schedules.aresume(row.name, caller.by(why.reason))
    return serializers.schedule(resumed, caller, hiding)


@router.post("/{name:path}:run", status_code=201)
async def run(
    name: str, caller: Operator, admin: AdminDep, why: ReasonBody, key: IdempotencyKey = None
) -> EnqueuedOut:
    """Enqueue the schedule's job now, beside its ticks. The same key makes no second one, until a
    day after that job has ended."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    own = None if key is None else f"{caller.id}:{key}"
    made = await admin.schedules.arun(row.name, caller.by(why.reason), key=own)
    return EnqueuedOut.of(made)


@router.post("/{name:path}:backfill", status_code=202)
async def backfill(
    name: str, asked: shapes.BackfillIn, caller: Operator, admin: AdminDep
) -> OperationOut:
    """Freeze which past ticks have no job, and have workers make these jobs at a rate: the answer
    is the operation that does it."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    started = await admin.schedules.abackfill(
        row.name,
        asked.since,
        asked.until,
        caller.by(asked.reason),
        rate=asked.rate,
        forgotten=asked.forgotten,
        dry_run=asked.dry_run,
    )
    return serializers.operation(started)


async def _seen(admin: Admin, name: str, caller: Caller, scope: Scope) -> ScheduleRow:
    row = await admin.schedules.aget(name)
    if row is None or not caller.may(scope, row.job.queue):
        raise ProblemError("not-found", "there is no such schedule, or none that you may see")
    return row


def _must_steer(caller: Caller, queue: str) -> None:
    caller.must(Scope.OPERATE, queue)
    caller.must(Scope.ENQUEUE, queue)


def _instant(token: str) -> datetime:
    try:
        return datetime.fromisoformat(token)
    except ValueError:
        raise InvalidValue("the page token is none; pass `next_page_token` as it was") from None
