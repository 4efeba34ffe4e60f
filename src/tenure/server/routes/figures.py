"""Figures: stats from rollups, depths of queues, groups of dead letters, where a job stands."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from tenure.admin import EVERY_QUEUE, Depth, FailedGroup, Scope, Spread, Tally
from tenure.server.access import Caller, Reader
from tenure.server.parts import Hiding, PageSize, Verbs, seen_job
from tenure.server.shapes import figures as shapes
from tenure.server.shapes.base import Name

router: APIRouter = APIRouter(prefix="/v1")


@router.get("/stats", tags=["stats"])
async def stats(
    caller: Reader,
    admin: Verbs,
    queue: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    since: datetime | None = None,
    until: datetime | None = None,
    step: Annotated[int, Query(ge=60, le=86_400, description="In seconds.")] = 60,
) -> shapes.StatsOut:
    """What ended over a time, in steps of whole minutes; by default the last hour."""
    caller.must(Scope.READ, queue or EVERY_QUEUE)
    found = await admin.astats(queue=queue, task=task, since=since, until=until, step=step)
    return shapes.StatsOut(
        whole=_tally(found.whole),
        steps=[_tally(one) for one in found.steps],
        folded_to=found.folded_to,
    )


def _tally(tally: Tally) -> shapes.TallyOut:
    return shapes.TallyOut(
        since=tally.since,
        until=tally.until,
        outcomes={str(name): count for name, count in tally.outcomes.items()},
        wait=_spread(tally.wait),
        run=_spread(tally.run),
    )


def _spread(spread: Spread) -> shapes.SpreadOut:
    return shapes.SpreadOut(
        count=spread.count,
        sum=spread.sum.total_seconds(),
        p50=_seconds(spread.p50),
        p95=_seconds(spread.p95),
        p99=_seconds(spread.p99),
    )


def _seconds(wait: timedelta | None) -> float | None:
    return None if wait is None else wait.total_seconds()


@router.get("/depths", tags=["stats"])
async def depths(caller: Reader, admin: Verbs) -> shapes.DepthListOut:
    """How much there is in each known queue, zeros too: exact up to 10,000 each."""
    found = await admin.adepths()
    seen = [_depth(one) for one in found if caller.may(Scope.READ, one.queue)]
    return shapes.DepthListOut(queues=seen)


def _depth(depth: Depth) -> shapes.DepthOut:
    names = ("due", "later", "running", "held", "failed")
    counts = {name: shapes.CountOut.model_validate(getattr(depth, name)) for name in names}
    return shapes.DepthOut(
        queue=depth.queue,
        backlog=depth.due.value,
        oldest_due_age=_seconds(depth.oldest_due_age),
        **counts,
    )


@router.get("/failed/groups", tags=["dead letters"])
async def groups(
    caller: Reader,
    admin: Verbs,
    hiding: Hiding,
    task: Annotated[Name | None, Query()] = None,
    page_size: PageSize = 50,
    page_token: Annotated[str | None, Query(max_length=2000)] = None,
) -> shapes.GroupListOut:
    """Dead letters by task and error, counted up to 10,000 each."""
    caller.must(Scope.READ, EVERY_QUEUE)
    page = await admin.afailed_groups(task=task, count=page_size, after=page_token)
    return shapes.GroupListOut(
        groups=[_group(one, caller, hiding) for one in page.groups], next_page_token=page.next
    )


def _group(group: FailedGroup, caller: Caller, hiding: Hiding) -> shapes.GroupOut:
    shown = caller.may(Scope.PAYLOAD_READ, EVERY_QUEUE) and group.error_message is not None
    return shapes.GroupOut(
        task=group.task,
        signature=group.signature if group.signature is None else hiding.text(group.signature),
        count=shapes.CountOut.model_validate(group.count),
        oldest_at=group.oldest_at,
        newest_at=group.newest_at,
        sample=str(group.sample),
        error_type=group.error_type,
        error_message=hiding.text(group.error_message or "") if shown else None,
    )


@router.get("/jobs/{job_id}/why", tags=["jobs"])
async def why(job_id: str, caller: Reader, admin: Verbs) -> shapes.StandingOut:
    """Where a job stands: why it is not running, or who runs it, or how it ended."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    found = await admin.awhy(job.id)
    count = None if found.count is None else shapes.CountOut.model_validate(found.count)
    return shapes.StandingOut(
        code=found.code.value,
        sentence=found.sentence,
        until=found.until,
        by=found.by,
        reason=found.reason,
        count=count,
    )
