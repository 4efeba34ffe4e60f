"""Routes of stats, queue depths, the overview and explanations."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from tenure.server.auth import Reader
from tenure.server.dependencies import AdminDep, PageSize, RedactorDep, seen_job
from tenure.server.schemas import stats as shapes
from tenure.server.schemas.base import Instant, Name
from tenure.types import (
    EVERY_QUEUE,
    Completion,
    Depth,
    DurationStats,
    FailedGroup,
    Scope,
    StatsBucket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.server.cache import SingleFlightCache
    from tenure.types import Overview


router: APIRouter = APIRouter(prefix="/v1")
_MOST_QUEUES = 500


@router.get("/stats", tags=["stats"])
async def stats(
    caller: Reader,
    admin: AdminDep,
    queue: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    since: Instant | None = None,
    until: Instant | None = None,
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


@router.get("/stats/queues", tags=["stats"])
async def paces(
    caller: Reader,
    admin: AdminDep,
    request: Request,
    minutes: Annotated[int, Query(ge=1, le=1440)] = 30,
) -> shapes.PaceListOut:
    """What completed and failed in each known queue, minute by minute; the first 500 by name."""
    seen = [one.queue for one in (await depths(caller, request)).queues]
    found = await admin.athroughput(seen[:_MOST_QUEUES], minutes=minutes)
    return shapes.PaceListOut(
        since=found.since,
        until=found.until,
        folded_to=found.folded_to,
        queues=[
            shapes.PaceOut(queue=name, completed=list(pace.completed), failed=list(pace.failed))
            for name, pace in found.queues.items()
        ],
    )


def _tally(tally: StatsBucket) -> shapes.TallyOut:
    return shapes.TallyOut(
        since=tally.since,
        until=tally.until,
        outcomes={str(name): count for name, count in tally.outcomes.items()},
        wait=_spread(tally.wait),
        run=_spread(tally.run),
    )


def _spread(spread: DurationStats) -> shapes.SpreadOut:
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
async def depths(caller: Reader, request: Request) -> shapes.DepthListOut:
    """How much there is in each known queue, zeros too: exact up to 10,000 each, and at most 10 s
    old, because all who ask share an answer."""
    shared: SingleFlightCache[Sequence[Depth]] = request.app.state.depths
    found = await shared.get()
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
    admin: AdminDep,
    hiding: RedactorDep,
    queue: Annotated[Name | None, Query(description="Of some 10,000 that are looked at.")] = None,
    task: Annotated[Name | None, Query()] = None,
    page_size: PageSize = 50,
    page_token: Annotated[str | None, Query(max_length=2000)] = None,
) -> shapes.GroupListOut:
    """Dead letters by task and error, counted up to 10,000 each; without a queue those of the whole
    installation. Without `payload:read` errors are told by their types alone, and there is one
    page."""
    caller.must(Scope.READ, queue or EVERY_QUEUE)
    shown = caller.may(Scope.PAYLOAD_READ, queue or EVERY_QUEUE)
    page = await admin.afailed_groups(
        queue=queue, task=task, count=page_size, after=page_token if shown else None
    )
    return shapes.GroupListOut(
        groups=[_group(one, hiding, shown=shown) for one in page.groups],
        # It says where it leads to: to what an error says.
        next_page_token=page.next if shown else None,
    )


def _group(group: FailedGroup, hiding: RedactorDep, *, shown: bool) -> shapes.GroupOut:
    def words(text: str | None) -> str | None:
        return hiding.text(text) if shown and text is not None else None

    return shapes.GroupOut(
        task=group.task,
        signature=words(group.signature),
        count=shapes.CountOut.model_validate(group.count),
        oldest_at=group.oldest_at,
        newest_at=group.newest_at,
        hours=list(group.hours),
        sample=str(group.sample),
        error_type=group.error_type,
        error_message=words(group.error_message),
    )


@router.get("/jobs/{job_id}/why", tags=["jobs"])
async def why(job_id: str, caller: Reader, admin: AdminDep) -> shapes.StandingOut:
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
        now=found.now,
        renewed_at=found.renewed_at,
        renewals=found.renewals,
    )


@router.get("/overview", tags=["stats"])
async def overview(caller: Reader, request: Request) -> shapes.OverviewOut:
    """The numbers, what needs attention in sentences, and what was completed last. All who ask
    share an answer, which is at most 10 s old."""
    caller.must(Scope.READ, EVERY_QUEUE)
    shared: SingleFlightCache[Overview] = request.app.state.overview
    found = await shared.get()
    numbers = found.numbers
    age = None if numbers.oldest_due is None else numbers.oldest_due.total_seconds()
    named = {name: getattr(numbers, name) for name in shapes.NumbersOut.model_fields}
    return shapes.OverviewOut(
        now=found.now,
        words=found.words,
        numbers=shapes.NumbersOut.model_validate({**named, "oldest_due": age}),
        attention=[shapes.AttentionOut.model_validate(one) for one in found.attention],
        left_out=found.left_out,
        completions=[_completion(one) for one in found.completions],
    )


def _completion(one: Completion) -> shapes.CompletionOut:
    return shapes.CompletionOut(
        job_id=str(one.job_id),
        queue=one.queue,
        task=one.task,
        attempt=one.attempt,
        started_at=one.started_at,
        ended_at=one.ended_at,
        ran=one.ran.total_seconds(),
    )
