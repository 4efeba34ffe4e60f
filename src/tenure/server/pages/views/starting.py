"""An operation before it starts: how many jobs match, how fast, why; and the count, typed, where
many are destroyed."""

from collections import defaultdict
from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.admin import Admin
from tenure.server.access import Caller
from tenure.server.pages import forms
from tenure.server.pages.rendering import back, render
from tenure.server.pages.visiting import Operating, Sent
from tenure.server.parts import Verbs
from tenure.server.problems import Problem
from tenure.server.routes import operations as routes
from tenure.server.shapes.operations import ChangesIn, FilterIn, OperationIn

router: APIRouter = APIRouter()
DESTROYING = ("cancel", "delete", "discard")
TYPED_ABOVE = 1000
_FILTER = ("state", "queue", "task", "signature")
_RATE = 50


@router.get("/operations/new")
async def look(request: Request, caller: Operating, admin: Verbs) -> Response:
    """How many jobs are meant, before anything is done: a dry run."""
    said = {name: ",".join(request.query_params.getlist(name)) for name in request.query_params}
    return await _ask(request, caller, admin, said)


@router.post("/operations")
async def start(request: Request, caller: Operating, admin: Verbs, fields: Sent) -> Response:
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
        raise Problem("not-found", "there is no such operation; choose one at Jobs or Dead letters")
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
        raise Problem("invalid", "choose jobs first, or all that match")
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
