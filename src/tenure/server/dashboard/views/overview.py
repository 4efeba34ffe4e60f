"""The overview: seven numbers, alerts, three charts, recently completed jobs."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.server.dashboard.charts import SPANS
from tenure.server.dashboard.rendering import render
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import AdminDep
from tenure.server.routes import installation, stats
from tenure.types import EVERY_QUEUE, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenure.server.cache import SingleFlightCache
    from tenure.server.dashboard.charts import Charts

router: APIRouter = APIRouter()


@router.get("/")
async def overview(
    request: Request, caller: Looking, admin: AdminDep, over: str = "1h"
) -> Response:
    """Show the installation. A token that is limited to some queues gets a list of them instead."""
    if not caller.may(Scope.READ, EVERY_QUEUE):
        some = await installation.queues(caller, admin, request)
        return render(request, caller, "overview-some.html", depths=some.queues)
    found = await stats.overview(caller, request)
    charts: Mapping[str, SingleFlightCache[Charts]] = request.app.state.charts
    over = over if over in SPANS else "1h"
    return render(
        request,
        caller,
        "overview.html",
        found=found,
        charts=await charts[over].get(),
        over=over,
        spans=list(SPANS),
    )
