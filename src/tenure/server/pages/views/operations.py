"""Operations: who changes many jobs, how far that is, what became of each; pause, resume, abort."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from tenure.admin import Admin, ItemOutcome, OperationState
from tenure.server.access import Caller
from tenure.server.pages import forms
from tenure.server.pages.rendering import SAFE, back, render
from tenure.server.pages.visiting import Looking, Operating, Sent
from tenure.server.parts import Verbs
from tenure.server.problems import Problem
from tenure.server.routes import operations as routes
from tenure.server.shapes.operations import OperationOut

router: APIRouter = APIRouter()
_AT_ONCE = 50
_ITEMS = 100
_IDS = 1000


@router.get("/operations")
async def list_operations(
    request: Request, caller: Looking, admin: Verbs, after: str | None = None
) -> Response:
    """Operations, newest first."""
    page = await routes.list_operations(caller, admin, _AT_ONCE, after)
    return render(
        request,
        caller,
        "operations.html",
        operations=page.operations,
        next=page.next_page_token,
        first=after is None,
        far=far,
    )


@router.get("/operations/{operation_id}")
async def show(
    request: Request,
    operation_id: str,
    caller: Looking,
    admin: Verbs,
    outcome: ItemOutcome | Literal[""] = "",
    after: str | None = None,
) -> Response:
    """One operation, and its members."""
    one = await routes.show(operation_id, caller, admin)
    wanted = outcome or None
    page = await routes.items(operation_id, caller, admin, wanted, _ITEMS, after)
    return render(
        request,
        caller,
        "operation.html",
        one=one,
        far=far(one),
        items=page.items,
        next=page.next_page_token,
        first=after is None,
        outcome=wanted,
        site=str(request.base_url).rstrip("/"),
    )


def far(one: OperationOut) -> Mapping[str, float | None]:
    """How far it is: what was done, skipped and refused, and how long the rest will take."""
    done = sum(count for name, count in one.outcomes.items() if ItemOutcome(name).is_done)
    refused = one.outcomes.get(ItemOutcome.REFUSED, 0) + one.outcomes.get(ItemOutcome.BUSY, 0)
    left: float | None = None
    if one.state in (OperationState.PENDING, OperationState.RUNNING):
        pace = float(one.rate)
        if one.started_at is not None and one.done:
            ran = (datetime.now(UTC) - one.started_at).total_seconds()
            pace = min(pace, one.done / ran) if ran > 0 else pace
        left = (one.total - one.done) / pace
    return {"done": done, "failed": refused, "skipped": one.done - done - refused, "left": left}


@router.get("/operations/{operation_id}/ids.ndjson")
async def ids(operation_id: str, caller: Looking, admin: Verbs) -> Response:
    """The members, one in a line, with what became of each."""
    await routes.show(operation_id, caller, admin)
    name = f"operation-{operation_id}.ndjson"
    return StreamingResponse(
        _lines(operation_id, caller, admin),
        media_type="application/x-ndjson",
        headers={**SAFE, "Content-Disposition": f'attachment; filename="{name}"'},
    )


async def _lines(operation_id: str, caller: Caller, admin: Admin) -> AsyncIterator[str]:
    after: str | None = None
    while True:
        page = await routes.items(operation_id, caller, admin, None, _IDS, after)
        for item in page.items:
            said = item.model_dump(mode="json", exclude={"place"}, exclude_none=True)
            yield json.dumps(said, ensure_ascii=False) + "\n"
        if (after := page.next_page_token) is None:
            return


_DEEDS: Mapping[str, tuple[Callable[..., Awaitable[OperationOut]], str]] = {
    "pause": (routes.pause, "It is paused; what is done stays done."),
    "resume": (routes.resume, "It goes on."),
    "abort": (routes.abort, "It has ended; the rest is left as it was."),
}


@router.post("/operations/{operation_id}/{deed}")
async def steer(
    request: Request, operation_id: str, deed: str, caller: Operating, admin: Verbs, fields: Sent
) -> Response:
    """Pause it, let it go on, or end it."""
    if deed not in _DEEDS:
        raise Problem("not-found", "that cannot be done to an operation")
    do, said = _DEEDS[deed]
    await do(operation_id, caller, admin, forms.why(fields))
    return back(request, f"/operations/{operation_id}", said)
