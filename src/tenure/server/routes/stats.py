"""Routes of stats, the overview and explanations."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from tenure.server.auth import Reader
from tenure.server.dependencies import AdminDep, PageSize, RedactorDep, seen_job
from tenure.server.schemas import stats as shapes
from tenure.server.schemas.base import Instant, Name
from tenure.types import (
    EVERY_QUEUE,
    FailedGroup,
    Scope,
)

if TYPE_CHECKING:
    from tenure.server.cache import SingleFlightCache
    from tenure.types import Overview


router: APIRouter = APIRouter(prefix="/v1")


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
    return shapes.StatsOut.of(found)


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
    page = await admin.jobs.afailed_groups(
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

    return shapes.GroupOut.of(
        group, signature=words(group.signature), error_message=words(group.error_message)
    )


@router.get("/jobs/{job_id}/why", tags=["jobs"])
async def why(job_id: str, caller: Reader, admin: AdminDep) -> shapes.StandingOut:
    """Where a job stands: why it is not running, or who runs it, or how it ended."""
    job = await seen_job(admin, job_id, caller, Scope.READ)
    return shapes.StandingOut.of(await admin.jobs.awhy(job.id))


@router.get("/overview", tags=["stats"])
async def overview(caller: Reader, request: Request) -> shapes.OverviewOut:
    """The numbers, what needs attention in sentences, and what was completed last. All who ask
    share an answer, which is at most 10 s old."""
    caller.must(Scope.READ, EVERY_QUEUE)
    shared: SingleFlightCache[Overview] = request.app.state.overview
    return shapes.OverviewOut.of(await shared.get())
