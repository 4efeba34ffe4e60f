"""The page of jobs: search and facets.

What jobs can be narrowed to, with how many there are: the counts are the filters.

They come from the depths that all who ask share, and from what is on the page: nothing is counted
for them.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from tenure.admin import WINDOWS, Admin, Redactor, parse_selector, selector_text
from tenure.errors import InvalidValue, QueryFailed
from tenure.server.auth import Caller
from tenure.server.dashboard import timeline
from tenure.server.dashboard.filters import shown_as
from tenure.server.dashboard.rendering import SAFE, back, render
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import AdminDep, RedactorDep
from tenure.server.problems import KINDS, ProblemError, read
from tenure.server.routes import installation
from tenure.server.routes import jobs as routes
from tenure.server.schemas.installation import CountedQueueOut
from tenure.server.schemas.jobs import JobListOut, JobOut
from tenure.server.schemas.stats import CountOut
from tenure.types import JobView, Selector

_COUNTED: Mapping[JobView, Callable[[CountedQueueOut], Sequence[CountOut]]] = {
    JobView.DUE: lambda depth: [depth.due],
    JobView.QUEUED: lambda depth: [depth.due, depth.scheduled, depth.held],
    JobView.HELD: lambda depth: [depth.held],
    JobView.RUNNING: lambda depth: [depth.running],
    JobView.FAILED: lambda depth: [depth.failed],
}
_ALL = (JobView.QUEUED, JobView.RUNNING, JobView.FAILED)
_MOST_QUEUES = 30
_MOST_TASKS = 15


@dataclass(frozen=True, slots=True)
class Facet:
    """One value to narrow to: how many, where that is known, and the selector that a click makes.
    The one that is chosen already is taken away by it."""

    name: str
    count: CountOut | None
    selector: str
    chosen: bool


def states(meant: Selector, depths: Sequence[CountedQueueOut]) -> list[Facet]:
    """The states, counted in the queues that are chosen."""
    within = [one for one in depths if not meant.queue or one.name in meant.queue]
    return [
        _facet(
            meant,
            "state",
            view,
            _sum([count for one in within for count in _COUNTED[view](one)])
            if view in _COUNTED
            else None,
        )
        for view in JobView
    ]


def queues(meant: Selector, depths: Sequence[CountedQueueOut]) -> list[Facet]:
    """The queues, with how many of the chosen states there are in each; the fullest first."""
    views = [view for view in meant.state or _ALL if view in _COUNTED]
    counted = [
        (one.name, _sum([count for view in views for count in _COUNTED[view](one)]))
        for one in depths
    ]
    counted.sort(key=lambda one: (one[0] not in meant.queue, -one[1].value, one[0]))
    known = views or None
    return [
        _facet(meant, "queue", name, count if known else None)
        for name, count in counted[:_MOST_QUEUES]
    ]


def tasks(meant: Selector, found: Sequence[JobOut]) -> list[Facet]:
    """The tasks of what is on the page."""
    counts = Counter(job.task for job in found)
    names = [*meant.task, *(name for name, _ in counts.most_common() if name not in meant.task)]
    return [
        _facet(meant, "task", name, CountOut(value=counts[name], more=False))
        for name in names[:_MOST_TASKS]
    ]


def _facet(meant: Selector, field: str, value: str, count: CountOut | None) -> Facet:
    chosen = value in getattr(meant, field)
    changed: dict[str, Any] = {"id": (), field: () if chosen else (value,)}
    return Facet(str(value), count, selector_text(replace(meant, **changed)), chosen)


def _sum(counts: Sequence[CountOut]) -> CountOut:
    return CountOut(value=sum(one.value for one in counts), more=any(one.more for one in counts))


router: APIRouter = APIRouter()
_AT_ONCE = 50
_EXPORTED_AT_ONCE = 200
_MOST_EXPORTED = 10_000
_LONGEST = 4000


@router.get("/jobs")
async def search(
    request: Request,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    selector: Annotated[str, Query(alias="filter", max_length=_LONGEST)] = "",
    widen: Annotated[int, Query(ge=0, lt=len(WINDOWS))] = 0,
    after: str | None = None,
) -> Response:
    """The jobs that match, newest first."""
    text = selector.strip()
    if text.isascii() and text.isdigit():
        return back(request, f"/jobs/{text}")
    page, meant, wrong = await _found(text, widen, after, caller, admin, hiding)
    depths = (await installation.queues(caller, admin, request)).queues
    workers = (await installation.workers(caller, admin)).workers

    def link(**said: Any) -> str:
        return urlencode({name: value for name, value in said.items() if value})

    return render(
        request,
        caller,
        "jobs.html",
        status=200 if wrong is None else KINDS[wrong.code].status,
        selector=selector,
        page=page,
        wrong=wrong,
        widen=widen,
        widest=len(WINDOWS) - 1,
        first=after is None,
        states=states(meant, depths),
        queues=queues(meant, depths),
        tasks=tasks(meant, [] if page is None else page.jobs),
        workers={one.id: timeline.named(one) for one in workers},
        holder=timeline.holder,
        shown_as=shown_as,
        link=link,
    )


async def _found(
    text: str, widen: int, after: str | None, caller: Caller, admin: Admin, hiding: Redactor
) -> tuple[JobListOut | None, Selector, ProblemError | None]:
    """What was found, and what was meant; or why nothing was searched."""
    meant = Selector()
    try:
        meant = parse_selector(text)
        page = await routes.list_jobs(
            caller,
            admin,
            hiding,
            selector=text,
            widen=widen,
            page_size=_AT_ONCE,
            page_token=after,
        )
    except ProblemError as problem:
        return None, meant, problem
    except (InvalidValue, QueryFailed) as error:
        return None, meant, read(error)
    return page, meant, None


@router.get("/jobs.ndjson")
async def export(
    request: Request,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    selector: Annotated[str, Query(alias="filter", max_length=_LONGEST)] = "",
) -> Response:
    """The jobs that were chosen, or the newest 10,000 that match: one in a line."""
    ids = request.query_params.getlist("ids")
    if ids and not request.query_params.get("all"):
        selector = f"id:{','.join(ids)}"
    # What is wrong with it is told before the first line is sent.
    await routes.list_jobs(caller, admin, hiding, selector=selector, page_size=1)
    return StreamingResponse(
        _lines(selector, caller, admin, hiding),
        media_type="application/x-ndjson",
        headers={**SAFE, "Content-Disposition": 'attachment; filename="jobs.ndjson"'},
    )


async def _lines(
    selector: str, caller: Caller, admin: Admin, hiding: Redactor
) -> AsyncIterator[str]:
    after: str | None = None
    left = _MOST_EXPORTED
    while left > 0:
        page = await routes.list_jobs(
            caller,
            admin,
            hiding,
            selector=selector,
            page_size=min(_EXPORTED_AT_ONCE, left),
            page_token=after,
        )
        for job in page.jobs:
            yield json.dumps(job.model_dump(mode="json"), ensure_ascii=False) + "\n"
        left -= len(page.jobs)
        if (after := page.next_page_token) is None:
            return
