"""Jobs: found by a selector, narrowed by counts, chosen one by one or all that match."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from tenure.admin import WINDOWS, Admin, Redactor, Selector, parse_selector
from tenure.errors import InvalidValue, QueryFailed
from tenure.server.access import Caller
from tenure.server.pages import facets, timeline
from tenure.server.pages.rendering import SAFE, back, render
from tenure.server.pages.states import shown_as
from tenure.server.pages.visiting import Looking
from tenure.server.parts import Hiding, Verbs
from tenure.server.problems import KINDS, Problem, read
from tenure.server.routes import figures, installation
from tenure.server.routes import jobs as routes
from tenure.server.shapes.jobs import JobListOut

router: APIRouter = APIRouter()
_AT_ONCE = 50
_EXPORTED_AT_ONCE = 200
_MOST_EXPORTED = 10_000
_LONGEST = 4000


@router.get("/jobs")
async def search(
    request: Request,
    caller: Looking,
    admin: Verbs,
    hiding: Hiding,
    selector: Annotated[str, Query(alias="filter", max_length=_LONGEST)] = "",
    widen: Annotated[int, Query(ge=0, lt=len(WINDOWS))] = 0,
    after: str | None = None,
) -> Response:
    """The jobs that match, newest first."""
    text = selector.strip()
    if text.isascii() and text.isdigit():
        return back(request, f"/jobs/{text}")
    page, meant, wrong = await _found(text, widen, after, caller, admin, hiding)
    depths = (await figures.depths(caller, request)).queues
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
        states=facets.states(meant, depths),
        queues=facets.queues(meant, depths),
        tasks=facets.tasks(meant, [] if page is None else page.jobs),
        workers={one.id: timeline.named(one) for one in workers},
        holder=timeline.holder,
        shown_as=shown_as,
        link=link,
    )


async def _found(
    text: str, widen: int, after: str | None, caller: Caller, admin: Admin, hiding: Redactor
) -> tuple[JobListOut | None, Selector, Problem | None]:
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
    except Problem as problem:
        return None, meant, problem
    except (InvalidValue, QueryFailed) as error:
        return None, meant, read(error)
    return page, meant, None


@router.get("/jobs.ndjson")
async def export(
    request: Request,
    caller: Looking,
    admin: Verbs,
    hiding: Hiding,
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
