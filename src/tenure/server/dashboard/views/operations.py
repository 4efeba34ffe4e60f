"""The pages of operations: start, list, steer.

An operation before it starts: how many jobs match, how fast, why; and the count, typed, where
many are destroyed.
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


# Before the one that takes any id.
@router.get("/operations/new")
async def look(request: Request, caller: Operating, admin: AdminDep) -> Response:
    """How many jobs are meant, before anything is done: a dry run."""
    said = {name: ",".join(request.query_params.getlist(name)) for name in request.query_params}
    return await _ask(request, caller, admin, said)


@router.post("/operations")
async def start(request: Request, caller: Operating, admin: AdminDep, fields: Sent) -> Response:
    """Start it, unless so many would be destroyed that the count has to be typed first."""
    asked = _asked(fields)
    if asked.kind in DESTROYING:
        matched = await _matched(asked, caller, admin)
        typed = (forms.written(fields, "typed") or "").replace(",", "")
        if matched > TYPED_ABOVE and typed != str(matched):
            return await _ask(request, caller, admin, fields, mistyped=True)
    one = await routes.start(asked, caller, admin)
    jobs = "1 job" if one.total == 1 else f"{one.total:,} jobs"
    return back(request, f"/operations/{one.id}", f"Started: {jobs}, {one.rate:,} per second.")


async def _ask(
    request: Request,
    caller: Caller,
    admin: Admin,
    said: Mapping[str, str],
    *,
    mistyped: bool = False,
) -> Response:
    if said.get("kind") not in ("retry", "move", *DESTROYING):
        raise ProblemError(
            "not-found", "there is no such operation; choose one at Jobs or Dead letters"
        )
    asked = _asked(said)
    return render(
        request,
        caller,
        "starting.html",
        status=422 if mistyped else 200,
        asked_for=defaultdict(str, said),
        asked=asked,
        matched=await _matched(asked, caller, admin),
        grave=asked.kind in DESTROYING,
        typed_above=TYPED_ABOVE,
        mistyped=mistyped,
    )


async def _matched(asked: OperationIn, caller: Caller, admin: Admin) -> int:
    # A move that says nothing yet is no operation; how many it would be for is the same.
    trial = asked
    if asked.kind == "move" and asked.changes == ChangesIn():
        trial = asked.model_copy(update={"changes": ChangesIn(priority=0)})
    trial = trial.model_copy(update={"dry_run": True})
    return (await routes.start(trial, caller, admin)).total


def _meant(said: Mapping[str, str]) -> FilterIn | str:
    """Which jobs: all that a selector means, those that were chosen, or those of a filter."""
    if said.get("all"):
        return said.get("filter", "")
    ids = forms.written(said, "ids")
    fields = {name: forms.written(said, name) for name in _FILTER}
    if ids is None and not any(fields.values()):
        raise ProblemError("invalid", "choose jobs first, or all that match")
    return forms.asked(FilterIn, **fields, ids=None if ids is None else ids.split(","))


def _asked(said: Mapping[str, str]) -> OperationIn:
    changes = forms.asked(
        ChangesIn,
        queue=forms.written(said, "to_queue"),
        priority=forms.written(said, "to_priority"),
        run_at=forms.instant(said, "to_run_at"),
    )
    return forms.asked(
        OperationIn,
        kind=said.get("kind"),
        filter=_meant(said),
        changes=changes if said.get("kind") == "move" else None,
        rate=forms.written(said, "rate") or _RATE,
        reason=forms.written(said, "reason"),
    )


_AT_ONCE = 50
_ITEMS = 100
_IDS = 1000


@router.get("/operations")
async def list_operations(
    request: Request, caller: Looking, admin: AdminDep, after: str | None = None
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
    admin: AdminDep,
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
async def ids(operation_id: str, caller: Looking, admin: AdminDep) -> Response:
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


@router.post("/operations/{operation_id}/{action}")
async def act(
    request: Request,
    operation_id: str,
    action: str,
    caller: Operating,
    admin: AdminDep,
    fields: Sent,
) -> Response:
    """Pause it, resume it, or end it."""
    if action not in OPERATION_ACTIONS:
        raise ProblemError("not-found", "that cannot be done to an operation")
    described, reason = OPERATION_ACTIONS[action], forms.why(fields).reason
    row = await routes.act(described, operation_id, caller, admin, reason)
    facts = {"state": row.state, "done": row.done, "total": row.total}
    outcome = described.outcome(row.id, **facts)
    return back(request, f"/operations/{operation_id}", outcome.sentence)
