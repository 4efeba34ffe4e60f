"""Routes for statistics, the overview, dead letters and explanations."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from tenure.admin import Redactor
from tenure.server.auth import Reader
from tenure.server.dependencies import AdminDep, PageSize, RedactorDep, SearchDep, seen_job
from tenure.server.off_loop import off_loop
from tenure.server.page_tokens import seal, unseal
from tenure.server.routes.jobs import LARGEST_QUOTED
from tenure.server.schemas import stats as shapes
from tenure.server.schemas.base import Instant, Name
from tenure.types import (
    EVERY_QUEUE,
    FailedGroup,
    JobRow,
    Scope,
)

if TYPE_CHECKING:
    from tenure.server.cache import SingleFlightCache
    from tenure.types import Overview


router: APIRouter = APIRouter(prefix="/v1")


@router.get("/stats", tags=["stats"])
async def stats(
    caller: Reader,
    admin: SearchDep,
    queue: Annotated[Name | None, Query()] = None,
    task: Annotated[Name | None, Query()] = None,
    since: Instant | None = None,
    until: Instant | None = None,
    step: Annotated[
        int, Query(ge=60, le=86_400, description="Length of a step in seconds, a multiple of 60.")
    ] = 60,
) -> shapes.StatsOut:
    """Get throughput, wait times and run times over a time range (default: the last hour)."""
    caller.must(Scope.READ, queue or EVERY_QUEUE)
    result = await admin.astats(queue=queue, task=task, since=since, until=until, step=step)
    return shapes.StatsOut.of(result)


@router.get("/failed/groups", tags=["dead letters"])
async def groups(
    caller: Reader,
    admin: SearchDep,
    hiding: RedactorDep,
    queue: Annotated[Name | None, Query(description="Searches about 10,000 dead letters.")] = None,
    task: Annotated[Name | None, Query()] = None,
    page_size: PageSize = 50,
    page_token: Annotated[str | None, Query(max_length=4000)] = None,
) -> shapes.GroupListOut:
    """Group dead letters by task and error. Counts go up to 10,000. Without `queue`, you need
    `read` for all queues. Without `payload:read`, you see only error types, and only one page.
    """
    caller.must(Scope.READ, queue or EVERY_QUEUE)
    shown = caller.may(Scope.PAYLOAD_READ, queue or EVERY_QUEUE)
    of = "groups", queue, task
    after = unseal(caller, page_token, *of) if shown else None
    page = await admin.jobs.afailed_groups(queue=queue, task=task, count=page_size, after=after)
    jobs: dict[int, JobRow] = {}
    if shown and page.groups:
        samples = [one.sample for one in page.groups]
        rows = await admin.jobs.aget_many(samples, largest=LARGEST_QUOTED)
        jobs = {row.id: row for row in rows}
    return shapes.GroupListOut(
        groups=await off_loop(
            lambda: [_group(one, jobs.get(one.sample), hiding, shown=shown) for one in page.groups]
        ),
        # A page token contains an error message.
        next_page_token=seal(caller, page.next, *of) if shown else None,
    )


def _group(
    group: FailedGroup, of: JobRow | None, hiding: Redactor, *, shown: bool
) -> shapes.GroupOut:
    if shown:
        return shapes.GroupOut.of(hiding.group(group, of=of))
    return shapes.GroupOut.of(group, signature=None, error_message=None)


@router.get("/jobs/{job_id}/why", tags=["jobs"])
async def why(job_id: str, caller: Reader, admin: AdminDep) -> shapes.StandingOut:
    """Explain a job's state: why it is not running, which worker is running it, or how it ended."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    return shapes.StandingOut.of(await admin.jobs.awhy(job.id))


@router.get("/overview", tags=["stats"])
async def overview(caller: Reader, request: Request) -> shapes.OverviewOut:
    """Get key figures, alerts and recently completed jobs, at most 10 s old. Needs `read` for all
    queues.
    """
    caller.must(Scope.READ, EVERY_QUEUE)
    shared: SingleFlightCache[Overview] = request.app.state.overview
    return shapes.OverviewOut.of(await shared.get())
