"""The schedule pages: next and past runs, pause, run now, backfill."""

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.server.dashboard import forms
from tenure.server.dashboard.forms import instant, parse, text, why
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep, QuotasDep, RedactorDep
from tenure.server.problems import ProblemError
from tenure.server.routes import jobs, schedules
from tenure.server.schemas.schedules import BackfillIn
from tenure.types import TickOutcome

router: APIRouter = APIRouter()
_PAGE = 50
_STRIP = 20
_NEXT = 10
_PAST = 50
_LONGEST_KEY = 200


@router.get("/schedules")
async def list_schedules(
    request: Request,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    after: str | None = None,
) -> Response:
    """List schedules by name."""
    page = await schedules.list_schedules(
        caller, admin, hiding, page_size=_PAGE, page_token=after, ticks=_STRIP
    )
    return render(
        request,
        caller,
        "schedules.html",
        schedules=page.schedules,
        next=page.next_page_token,
        after=after,
    )


@router.get("/schedules/{name:path}")
async def schedule(
    name: str,
    request: Request,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    before: str | None = None,
) -> Response:
    """Show one schedule with its next and past runs."""
    found = await schedules.show(name, caller, admin, hiding)
    coming = await schedules.runs(name, caller, admin, count=_NEXT)
    past = await schedules.ticks(name, caller, admin, page_size=_PAST, page_token=before)
    last: Any = None
    if found.last_job_id is not None:
        try:
            last = await jobs.show(found.last_job_id, caller, admin, hiding)
        except ProblemError:  # The job is past its retention, or in a hidden queue.
            last = None
    return render(
        request,
        caller,
        "schedule.html",
        schedule=found,
        runs=coming.runs,
        ticks=past.ticks,
        next=past.next_page_token,
        before=before,
        last=last,
        skipped=TickOutcome.SKIPPED,
    )


@router.post("/schedules/{name:path}:pause")
async def pause(
    name: str,
    request: Request,
    caller: Operating,
    admin: AdminDep,
    hiding: RedactorDep,
    fields: Sent,
) -> Response:
    """Pause a schedule."""
    await schedules.pause(name, caller, admin, hiding, forms.pause(fields))
    return back(request, _path(name), f"Schedule {name} is paused.")


@router.post("/schedules/{name:path}:resume")
async def resume(
    name: str,
    request: Request,
    caller: Operating,
    admin: AdminDep,
    hiding: RedactorDep,
    fields: Sent,
) -> Response:
    """Resume a schedule."""
    await schedules.resume(name, caller, admin, hiding, why(fields))
    return back(request, _path(name), f"Schedule {name} continues with its next run.")


@router.post("/schedules/{name:path}:run")
async def run(
    name: str,
    request: Request,
    caller: Operating,
    admin: AdminDep,
    quotas: QuotasDep,
    fields: Sent,
) -> Response:
    """Enqueue the schedule's job now. Submitting the form twice enqueues only one job."""
    once = fields.get("once", "")[:_LONGEST_KEY] or None
    made = await schedules.run(name, caller, admin, quotas, why(fields), key=once)
    return back(request, _path(name), f"Job {made.id} is enqueued.")


@router.post("/schedules/{name:path}:backfill")
async def backfill(
    name: str, request: Request, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Enqueue jobs for past runs that never got one, or just count those runs."""
    at = text(fields, "at")
    body = parse(
        BackfillIn,
        since=at or instant(fields, "since"),
        until=at or instant(fields, "until"),
        rate=text(fields, "rate") or 500,
        forgotten="forgotten" in fields,
        dry_run="count" in fields,
        reason=text(fields, "reason"),
    )
    started = await schedules.backfill(name, body, caller, admin)
    runs = "1 run has" if started.total == 1 else f"{started.total:,} runs have"
    if body.dry_run:
        return back(request, _path(name), f"{runs} no job in that time. Nothing has changed.")
    return back(request, _path(name), f"{runs} no job. Operation {started.id} enqueues them.")


def _path(name: str) -> str:
    return f"/schedules/{quote(name)}"
