"""The dead letter page, grouped by task and error."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tenure.server.dashboard.charts import failures
from tenure.server.dashboard.rendering import render
from tenure.server.dashboard.searches import PageSearchDep
from tenure.server.dashboard.session import Looking
from tenure.server.dashboard.timeline import named
from tenure.server.dashboard.views import queues
from tenure.server.dependencies import RedactorDep
from tenure.server.routes import installation, stats
from tenure.server.schemas.installation import WorkerOut
from tenure.server.schemas.stats import CountOut, GroupListOut
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter()
_AT_ONCE = 50


@router.get("/failed")
async def groups(
    request: Request,
    caller: Looking,
    admin: PageSearchDep,
    hiding: RedactorDep,
    queue: Annotated[str, Query(max_length=200)] = "",
    task: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str | None, Query(max_length=4000)] = None,
) -> Response:
    """Show the groups for all queues, or for one."""
    depths = (await installation.queues(caller, admin, request)).queues
    page = None
    if caller.may(Scope.READ, queue or EVERY_QUEUE):
        page = await stats.groups(
            caller, admin, hiding, queue or None, task or None, _AT_ONCE, after
        )
    about: dict[str, Any] = {"depth": None, "pause": None, "serving": []}
    if queue:
        shown = next((one for one in depths if one.name == queue), None)
        workers = (await installation.workers(caller, admin)).workers
        about = {
            "depth": shown,
            "pause": queues.paused(shown),
            "serving": _serving(queues.takers(workers, queue)),
        }
    return render(
        request,
        caller,
        "failed.html",
        page=page,
        total=_total(page) if after is None else None,
        queue=queue,
        task=task,
        first=after is None,
        failures=failures,
        queues=[one for one in depths if one.failed.value or one.name == queue],
        query=lambda **fields: urlencode({name: text for name, text in fields.items() if text}),
        **about,
    )


def _total(page: GroupListOut | None) -> CountOut | None:
    """Count the jobs in all groups. Return None if there is another page of groups."""
    if page is None or page.next_page_token is not None:
        return None
    counts = [one.count for one in page.groups]
    return CountOut(value=sum(one.value for one in counts), more=any(one.more for one in counts))


def _serving(workers: Sequence[WorkerOut]) -> list[str]:
    """Describe a queue's workers and their used slots, grouped by name."""
    by_name: dict[str, list[WorkerOut]] = {}
    for one in workers:
        by_name.setdefault(named(one), []).append(one)
    return [
        f"{name}{f' ×{len(ones)}' if len(ones) > 1 else ''}"
        f" ({sum(one.running for one in ones)} of {sum(one.slots for one in ones)})"
        for name, ones in by_name.items()
    ]
