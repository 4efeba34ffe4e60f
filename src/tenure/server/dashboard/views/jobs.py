"""The jobs page: search and facets.

A facet is a value to filter by, with its count. Counts come from the shared queue depths and from
the jobs on the page, so the page needs no count queries.
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
from tenure.server.dashboard.searches import PageSearchDep
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import RedactorDep
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
    """A value to filter by, its count if known, and the selector to apply when it's clicked.

    Clicking a selected facet removes it.
    """

    name: str
    count: CountOut | None
    selector: str
    chosen: bool


def states(selector: Selector, depths: Sequence[CountedQueueOut]) -> list[Facet]:
    """List the states, counted in the selected queues."""
    within = [one for one in depths if not selector.queue or one.name in selector.queue]
    return [
        _facet(
            selector,
            "state",
            view,
            _sum([count for one in within for count in _COUNTED[view](one)])
            if view in _COUNTED
            else None,
        )
        for view in JobView
    ]


def queues(selector: Selector, depths: Sequence[CountedQueueOut]) -> list[Facet]:
    """List the queues with their job counts in the selected states, fullest first."""
    views = [view for view in selector.state or _ALL if view in _COUNTED]
    counted = [
        (one.name, _sum([count for view in views for count in _COUNTED[view](one)]))
        for one in depths
    ]
    counted.sort(key=lambda one: (one[0] not in selector.queue, -one[1].value, one[0]))
    known = views or None
    return [
        _facet(selector, "queue", name, count if known else None)
        for name, count in counted[:_MOST_QUEUES]
    ]


def tasks(selector: Selector, jobs: Sequence[JobOut]) -> list[Facet]:
    """List the tasks that the jobs on the page belong to."""
    counts = Counter(job.task for job in jobs)
    names = [
        *selector.task,
        *(name for name, _ in counts.most_common() if name not in selector.task),
    ]
    return [
        _facet(selector, "task", name, CountOut(value=counts[name], more=False))
        for name in names[:_MOST_TASKS]
    ]


def _facet(selector: Selector, field: str, value: str, count: CountOut | None) -> Facet:
    chosen = value in getattr(selector, field)
    changed: dict[str, Any] = {"id": (), field: () if chosen else (value,)}
    return Facet(str(value), count, selector_text(replace(selector, **changed)), chosen)


def _sum(counts: Sequence[CountOut]) -> CountOut:
    return CountOut(value=sum(one.value for one in counts), more=any(one.more for one in counts))


router: APIRouter = APIRouter()
_AT_ONCE = 50
# The size limit, in bytes of JSON, up to which a job's arguments are previewed in one line.
_LARGEST = 2048
# Few, because whole payloads are read.
_EXPORTED_AT_ONCE = 20
_MOST_EXPORTED = 10_000
_LONGEST = 4000


@router.get("/jobs")
async def search(
    request: Request,
    caller: Looking,
    admin: PageSearchDep,
    hiding: RedactorDep,
    selector: Annotated[str, Query(alias="filter", max_length=_LONGEST)] = "",
    widen: Annotated[int, Query(ge=0, lt=len(WINDOWS))] = 0,
    after: str | None = None,
) -> Response:
    """Show the jobs that match, newest first."""
    text = selector.strip()
    if text.isascii() and text.isdigit():
        return back(request, f"/jobs/{text}")
    page, parsed, wrong = await _search(text, widen, after, caller, admin, hiding)
    depths = (await installation.queues(caller, admin, request)).queues
    workers = (await installation.workers(caller, admin)).workers

    def link(**fields: Any) -> str:
        return urlencode({name: value for name, value in fields.items() if value})

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
        states=states(parsed, depths),
        queues=queues(parsed, depths),
        tasks=tasks(parsed, [] if page is None else page.jobs),
        workers={one.id: timeline.named(one) for one in workers},
        holder=timeline.holder,
        shown_as=shown_as,
        link=link,
    )


async def _search(
    text: str, widen: int, after: str | None, caller: Caller, admin: Admin, hiding: Redactor
) -> tuple[JobListOut | None, Selector, ProblemError | None]:
    """Return the page and the parsed selector, or the problem."""
    parsed = Selector()
    try:
        parsed = parse_selector(text)
        page = await routes.find(
            caller,
            admin,
            hiding,
            selector=text,
            widen=widen,
            page_size=_AT_ONCE,
            page_token=after,
            largest=_LARGEST,
        )
    except ProblemError as problem:
        return None, parsed, problem
    except (InvalidValue, QueryFailed) as error:
        return None, parsed, read(error)
    return page, parsed, None


@router.get("/jobs.ndjson")
async def export(
    request: Request,
    caller: Looking,
    admin: PageSearchDep,
    hiding: RedactorDep,
    selector: Annotated[str, Query(alias="filter", max_length=_LONGEST)] = "",
) -> Response:
    """Export the selected jobs, or the newest 10,000 matching ones, one per line."""
    ids = request.query_params.getlist("ids")
    if ids and not request.query_params.get("all"):
        selector = f"id:{','.join(ids)}"
    # Reject the request before the first line is sent.
    await routes.find(caller, admin, hiding, selector=selector, page_size=1, largest=0)
    caller.exports("jobs")
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
        page = await routes.find(
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
