"""The operation pages: start, list, show, pause and abort.

Before an operation starts, a page shows how many jobs match and asks for a rate and a reason. To
cancel or delete many jobs, the user has to type how many there are.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from tenure._actions import OPERATION_ACTIONS
from tenure.admin import Admin
from tenure.server.auth import Caller
from tenure.server.dashboard import forms
from tenure.server.dashboard.rendering import SAFE, back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep
from tenure.server.problems import ProblemError
from tenure.server.routes import operations as routes
from tenure.server.schemas.operations import ChangesIn, FilterIn, OperationIn, OperationOut
from tenure.types import ItemOutcome, OperationState

router: APIRouter = APIRouter()
DESTROYING = ("cancel", "delete", "discard")
TYPED_ABOVE = 1000
_FILTER = ("state", "queue", "task", "signature")
_RATE = 50


# Must come before the route that takes any id.
@router.get("/operations/new")
async def look(request: Request, caller: Operating, admin: AdminDep) -> Response:
    """Show how many jobs match, before anything changes."""
    fields = {name: ",".join(request.query_params.getlist(name)) for name in request.query_params}
    return await _confirm(request, caller, admin, fields)


@router.post("/operations")
async def start(request: Request, caller: Operating, admin: AdminDep, fields: Sent) -> Response:
    """Start the operation. If it destroys many jobs, the typed count has to match."""
    operation = _operation(fields)
    if operation.kind in DESTROYING:
        matched = await _matched(operation, caller, admin)
        typed = (forms.text(fields, "typed") or "").replace(",", "")
        if matched > TYPED_ABOVE and typed != str(matched):
            return await _confirm(request, caller, admin, fields, mistyped=True)
    one = await routes.start(operation, caller, admin)
    jobs = "1 job" if one.total == 1 else f"{one.total:,} jobs"
    return back(request, f"/operations/{one.id}", f"Started: {jobs}, {one.rate:,} per second.")


async def _confirm(
    request: Request,
    caller: Caller,
    admin: Admin,
    fields: Mapping[str, str],
    *,
    mistyped: bool = False,
) -> Response:
    if fields.get("kind") not in ("retry", "move", *DESTROYING):
        raise ProblemError(
            "not-found", "there is no such operation. Start one on the page Jobs or Dead letters"
        )
    operation = _operation(fields)
    return render(
        request,
        caller,
        "starting.html",
        status=422 if mistyped else 200,
        fields=defaultdict(str, fields),
        operation=operation,
        matched=await _matched(operation, caller, admin),
        grave=operation.kind in DESTROYING,
        typed_above=TYPED_ABOVE,
        mistyped=mistyped,
    )


async def _matched(operation: OperationIn, caller: Caller, admin: Admin) -> int:
    # A move without changes is rejected, so count with an arbitrary change, which matches the same
    # jobs.
    trial = operation
    if operation.kind == "move" and operation.changes == ChangesIn():
        trial = operation.model_copy(update={"changes": ChangesIn(priority=0)})
    trial = trial.model_copy(update={"dry_run": True})
    return (await routes.start(trial, caller, admin)).total


def _filter(fields: Mapping[str, str]) -> FilterIn | str:
    """Return the jobs to act on, as a selector or as a filter, which may contain selected ids."""
    if fields.get("all"):
        return fields.get("filter", "")
    ids = forms.text(fields, "ids")
    given = {name: forms.text(fields, name) for name in _FILTER}
    if ids is None and not any(given.values()):
        raise ProblemError("invalid", "select jobs first, or choose all matching jobs")
    return forms.parse(FilterIn, **given, ids=None if ids is None else ids.split(","))


def _operation(fields: Mapping[str, str]) -> OperationIn:
    changes = forms.parse(
        ChangesIn,
        queue=forms.text(fields, "to_queue"),
        priority=forms.text(fields, "to_priority"),
        run_at=forms.instant(fields, "to_run_at"),
    )
    return forms.parse(
        OperationIn,
        kind=fields.get("kind"),
        filter=_filter(fields),
        changes=changes if fields.get("kind") == "move" else None,
        rate=forms.text(fields, "rate") or _RATE,
        reason=forms.text(fields, "reason"),
    )


_AT_ONCE = 50
_ITEMS = 100
_IDS = 1000


@router.get("/operations")
async def list_operations(
    request: Request, caller: Looking, admin: AdminDep, after: str | None = None
) -> Response:
    """List operations, newest first."""
    page = await routes.list_operations(caller, admin, _AT_ONCE, after)
    return render(
        request,
        caller,
        "operations.html",
        operations=page.operations,
        next=page.next_page_token,
        first=after is None,
        progress=progress,
    )


@router.get("/operations/{operation_id}")
async def show(
    request: Request,
    operation_id: str,
    caller: Looking,
    admin: AdminDep,
    outcome: ItemOutcome | Literal[""] = "",
    after: str | None = None,
) -> Response:
    """Show one operation and its jobs."""
    one = await routes.show(operation_id, caller, admin)
    wanted = outcome or None
    page = await routes.items(operation_id, caller, admin, wanted, _ITEMS, after)
    return render(
        request,
        caller,
        "operation.html",
        one=one,
        progress=progress(one),
        items=page.items,
        next=page.next_page_token,
        first=after is None,
        outcome=wanted,
        site=str(request.base_url).rstrip("/"),
    )


def progress(one: OperationOut) -> Mapping[str, float | None]:
    """Count the done, skipped and failed jobs, and estimate the time left."""
    done = sum(count for name, count in one.outcomes.items() if ItemOutcome(name).is_done)
    refused = one.outcomes.get(ItemOutcome.REFUSED, 0) + one.outcomes.get(ItemOutcome.BUSY, 0)
    left: float | None = None
    if one.state in (OperationState.PENDING, OperationState.RUNNING):
        pace = float(one.rate)
        if one.started_at is not None and one.done:
            ran = (datetime.now(UTC) - one.started_at).total_seconds()
            pace = min(pace, one.done / ran) if ran > 0 else pace
        left = (one.total - one.done) / pace
    skipped = one.done - done - refused - one.waiting
    return {"done": done, "failed": refused, "skipped": skipped, "left": left}


@router.get("/operations/{operation_id}/ids.ndjson")
async def ids(operation_id: str, caller: Looking, admin: AdminDep) -> Response:
    """Export the jobs with their results, one per line."""
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
            fields = item.model_dump(mode="json", exclude={"place"}, exclude_none=True)
            yield json.dumps(fields, ensure_ascii=False) + "\n"
        if (after := page.next_page_token) is None:
            return


@router.post("/operations/{operation_id}/{action}")
async def act(
    request: Request,
    operation_id: str,
    action: str,
    caller: Operating,
    admin: AdminDep,
    fields: Sent,
) -> Response:
    """Pause, resume or abort the operation."""
    if action not in OPERATION_ACTIONS:
        raise ProblemError("not-found", "an operation has no such action")
    described, reason = OPERATION_ACTIONS[action], forms.why(fields).reason
    row = await routes.act(described, operation_id, caller, admin, reason)
    facts = {"state": row.state, "done": row.done, "total": row.total}
    outcome = described.outcome(row.id, **facts)
    return back(request, f"/operations/{operation_id}", outcome.sentence)
