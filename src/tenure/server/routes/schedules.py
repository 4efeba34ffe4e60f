"""Schedule routes."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Query

from tenure.admin import Admin, Redactor, preview_timing
from tenure.kinds import KINDS
from tenure.server import serializers
from tenure.server.auth import Caller, Operator, Reader
from tenure.server.dependencies import (
    AdminDep,
    IdempotencyKey,
    PageSize,
    PageToken,
    QuotasDep,
    ReasonBody,
    RedactorDep,
)
from tenure.server.off_loop import off_loop
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.schemas import schedules as shapes
from tenure.server.schemas.base import ActionResult, Instant
from tenure.server.schemas.installation import PauseIn
from tenure.server.schemas.jobs import EnqueuedOut
from tenure.server.schemas.operations import OperationOut
from tenure.types import RecentRuns, ScheduleRow, Scope

router: APIRouter = APIRouter(prefix="/v1/schedules", tags=["schedules"])
_NEXT, _PAST = 5, 10


@router.post("", status_code=201)
async def create(
    body: shapes.ScheduleIn, caller: Operator, admin: AdminDep, hiding: RedactorDep
) -> shapes.ScheduleOut:
    """Create a schedule. Also needs `enqueue`, because schedules enqueue jobs."""
    _must_enqueue(caller, body.queue)
    caller.must_task(body.task)
    options = body.model_dump(exclude={"reason", "name", "task", *KINDS})
    made = await admin.schedules.acreate(body.name, body.task, caller.by(body.reason), **options)
    return serializers.schedule(made, caller, hiding)


@router.post(":preview")
async def preview(body: shapes.PreviewIn, _caller: Reader) -> shapes.RunListOut:
    """Preview a timing's next runs, including clock changes."""
    runs = await asyncio.to_thread(preview_timing, **body.model_dump())
    return shapes.RunListOut(runs=[shapes.RunOut.of(run) for run in runs])


@router.get("")
async def list_schedules(
    caller: Reader,
    admin: AdminDep,
    hiding: RedactorDep,
    page_size: PageSize = 50,
    page_token: PageToken = None,
    ticks: Annotated[
        int, Query(ge=0, le=50, description="Include this many past runs of each schedule.")
    ] = 0,
) -> shapes.ScheduleListOut:
    """List schedules by name."""
    after = unseal(caller, page_token, "schedules") or ""
    rows = await admin.schedules.alist(after=after, count=page_size + 1, patterns=caller.patterns)
    page = rows[:page_size]
    names = [row.name for row in page]
    past = await admin.schedules.arecent_runs(names, ticks=ticks) if names and ticks else {}
    return shapes.ScheduleListOut(
        schedules=await off_loop(
            lambda: [_listed(row, past.get(row.name), caller, hiding) for row in page]
        ),
        next_page_token=seal(caller, page[-1].name if len(rows) > page_size else None, "schedules"),
    )


def _listed(
    row: ScheduleRow, past: RecentRuns | None, caller: Caller, hiding: Redactor
) -> shapes.ScheduleListedOut:
    return shapes.ScheduleListedOut(
        **dict(serializers.schedule(row, caller, hiding)),
        past_runs=[] if past is None else [shapes.TickOut.of(tick) for tick in past.ticks],
        last_state=None if past is None else past.state,
    )


# A name may contain slashes and colons, so routes with a suffix must precede the bare name.
@router.get("/{name:path}/runs")
async def runs(
    name: str,
    caller: Reader,
    admin: AdminDep,
    after: Annotated[
        Instant | None, Query(description="Runs after this time (default: now).")
    ] = None,
    count: Annotated[int, Query(ge=1, le=100, description="How many runs.")] = 10,
) -> shapes.RunListOut:
    """List a schedule's next runs."""
    row = await _seen(admin, name, caller, Scope.READ)
    coming = await admin.schedules.apreview(row.name, count=count, after=after)
    return shapes.RunListOut(runs=[shapes.RunOut.of(run) for run in coming])


@router.get("/{name:path}/ticks")
async def ticks(
    name: str,
    caller: Reader,
    admin: AdminDep,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> shapes.TickListOut:
    """List a schedule's past runs with their jobs, newest first."""
    row = await _seen(admin, name, caller, Scope.READ)
    place = unseal(caller, page_token, "ticks", row.name)
    before = None if place is None else datetime.fromisoformat(place)
    found = await admin.schedules.aticks(row.name, before=before, count=page_size)
    more = found[-1].fire_at.isoformat() if len(found) == page_size else None
    return shapes.TickListOut(
        ticks=[shapes.TickOut.of(tick) for tick in found],
        next_page_token=seal(caller, more, "ticks", row.name),
    )


@router.get("/{name:path}")
async def show(
    name: str, caller: Reader, admin: AdminDep, hiding: RedactorDep
) -> shapes.ScheduleShownOut:
    """Get a schedule with its next and last runs."""
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
    body: shapes.ScheduleChangeIn,
    caller: Operator,
    admin: AdminDep,
    hiding: RedactorDep,
) -> shapes.ScheduleOut:
    """Change a schedule. Changing the task, queue or arguments also needs `enqueue`."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    changes = body.model_dump(exclude={"reason"})
    if any(changes[name] is not None for name in ("queue", "task", "args")):
        _must_enqueue(caller, body.queue or row.job.queue)
        caller.must_task(body.task or row.job.task)
    changed = await admin.schedules.aupdate(row.name, caller.by(body.reason), **changes)
    return serializers.schedule(changed, caller, hiding)


@router.delete("/{name:path}")
async def delete(name: str, caller: Operator, admin: AdminDep) -> ActionResult:
    """Delete a schedule that no code declares. Its past runs and jobs are kept."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    await admin.schedules.adelete(row.name, caller.by(None))
    return ActionResult(result="deleted")


@router.post("/{name:path}:pause")
async def pause(
    name: str,
    caller: Operator,
    admin: AdminDep,
    hiding: RedactorDep,
    body: Annotated[PauseIn, Body(default_factory=PauseIn)],
) -> shapes.ScheduleOut:
    """Pause a schedule. Runs during the pause enqueue no jobs and are recorded as skipped."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    by = caller.by(body.reason)
    paused = await admin.schedules.apause(row.name, by, until=body.until)
    return serializers.schedule(paused, caller, hiding)


@router.post("/{name:path}:resume")
async def resume(
    name: str, caller: Operator, admin: AdminDep, hiding: RedactorDep, why: ReasonBody
) -> shapes.ScheduleOut:
    """Resume a paused schedule, starting with its next run."""
    row = await _seen(admin, name, caller, Scope.OPERATE)
    resumed = await admin.schedules.aresume(row.name, caller.by(why.reason))
    return serializers.schedule(resumed, caller, hiding)


@router.post("/{name:path}:run", status_code=201)
async def run(
    name: str,
    caller: Operator,
    admin: AdminDep,
    quotas: QuotasDep,
    why: ReasonBody,
    key: IdempotencyKey = None,
) -> EnqueuedOut:
    """Enqueue a schedule's job now. Repeating the request with the same `Idempotency-Key` doesn't
    enqueue a second job until 24 h after the first one ends.
    """
    row = await _seen(admin, name, caller, Scope.OPERATE)
    caller.must_task(row.job.task)
    await quotas.check_jobs(caller, [(row.job.queue, row.job.args)])
    own = None if key is None else f"{caller.id}:{key}"
    made = await admin.schedules.arun(row.name, caller.by(why.reason), key=own)
    return EnqueuedOut.of(made)


@router.post("/{name:path}:backfill", status_code=202)
async def backfill(
    name: str, body: shapes.BackfillIn, caller: Operator, admin: AdminDep
) -> OperationOut:
    """Enqueue jobs for past runs that never got one. Workers do this at the given rate, as an
    operation.
    """
    row = await _seen(admin, name, caller, Scope.OPERATE)
    caller.must_task(row.job.task)
    started = await admin.schedules.abackfill(
        row.name,
        body.since,
        body.until,
        caller.by(body.reason),
        rate=body.rate,
        forgotten=body.forgotten,
        dry_run=body.dry_run,
    )
    return serializers.operation(started)


async def _seen(admin: Admin, name: str, caller: Caller, scope: Scope) -> ScheduleRow:
    row = await admin.schedules.aget(name)
    if row is None or not caller.may(scope, row.job.queue):
        raise ProblemError("not-found", "the schedule does not exist, or you may not see it")
    return row


def _must_enqueue(caller: Caller, queue: str) -> None:
    caller.must(Scope.OPERATE, queue)
    caller.must(Scope.ENQUEUE, queue)
