"""The Overview: seven numbers, three charts, what needs attention, what was completed last."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.admin import EVERY_QUEUE, Scope
from tenure.server.pages.charting import SPANS
from tenure.server.pages.rendering import render
from tenure.server.pages.visiting import Looking
from tenure.server.routes import figures, glance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenure.server.pages.charting import Charts
    from tenure.server.shared import Shared

router: APIRouter = APIRouter()


@router.get("/")
async def overview(request: Request, caller: Looking, over: str = "1h") -> Response:
    """The installation at a glance; who may see some queues alone is shown those."""
    if not caller.may(Scope.READ, EVERY_QUEUE):
        some = await figures.depths(caller, request)
        return render(request, caller, "overview-some.html", depths=some.queues)
    found = await glance.overview(caller, request)
    charts: Mapping[str, Shared[Charts]] = request.app.state.charts
    over = over if over in SPANS else "1h"
    return render(
        request,
        caller,
        "overview.html",
        found=found,
        charts=await charts[over].latest(),
        over=over,
        spans=list(SPANS),
    )
