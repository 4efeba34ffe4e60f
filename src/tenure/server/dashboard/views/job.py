"""The job page: its timeline, lease, payload and actions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure._actions import JOB_ACTIONS
from tenure.admin import Admin
from tenure.server.auth import Caller
from tenure.server.dashboard import filters, forms, timeline
from tenure.server.dashboard.filters import shown_as, who
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep, RedactorDep
from tenure.server.problems import ProblemError
from tenure.server.routes import installation, jobs, stats
from tenure.server.schemas.installation import AuditOut
from tenure.server.schemas.jobs import AttemptOut, JobOut, MembershipOut, MoveIn
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter()
TABS = ("arguments", "result", "items", "errors", "log", "events", "raw")
_ITEMS = 100


@router.get("/jobs/{job_id}")
async def show(
    request: Request,
    job_id: str,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    tab: str = "arguments",
    every: bool = False,
    after: str = "",
) -> Response:
    """Show a job."""
    job = await jobs.show(job_id, caller, admin, hiding)
    attempts = (await jobs.attempts(job_id, caller, admin, hiding)).attempts
    explanation = await stats.why(job_id, caller, admin)
    known = (await installation.workers(caller, admin)).workers
    workers = {one.id: timeline.named(one) for one in known}
    changes = await _changes(job, caller, admin, hiding)
    now = explanation.now or datetime.now(UTC)
    tab = tab if tab in TABS else TABS[0]
    more: dict[str, Any] = {}
    if tab == "items" and job.payload:
        more["items"] = (await jobs.items(job_id, caller, admin, hiding, after[:400], _ITEMS)).items
    if tab == "events":
        joined = (await jobs.operations(job_id, caller, admin)).operations
        more["events"] = _events(attempts, changes or [], joined)
    enqueued = next((one for one in changes or [] if one.action == "enqueue"), None)
    return render(
        request,
        caller,
        "job.html",
        job=job,
        shown=shown_as(job, now),
        now=now,
        explanation=explanation,
        steps=list(timeline.steps(job, attempts, enqueued, workers)),
        attempts=attempts,
        raw_attempts=[one.model_dump(mode="json") for one in attempts],
        own=filters.own,
        every=every,
        tab=tab,
        tabs=TABS,
        audited=changes is not None,
        page_of=_ITEMS,
        site=str(request.base_url).rstrip("/"),
        **more,
    )


async def _changes(
    job: JobOut, caller: Caller, admin: Admin, hiding: RedactorDep
) -> list[AuditOut] | None:
    """List changes to the job, newest first.

    Return None if the caller may not read the audit log.
    """
    if not caller.may(Scope.READ, EVERY_QUEUE):
        return None
    page = await installation.audit(caller, admin, hiding, target=f"job:{job.id}")
    return page.changes


def _events(
    attempts: list[AttemptOut], changes: list[AuditOut], joined: list[MembershipOut]
) -> list[Mapping[str, Any]]:
    """List all of the job's events, oldest first."""
    events: list[dict[str, Any]] = [
        {
            "at": one.at,
            "event": one.action,
            "by": f"{who(one.actor)}, {one.source}",
            "reason": one.reason,
        }
        for one in changes
    ]
    for one in attempts:
        attempt = f"attempt {one.attempt} (fencing token {one.fence})"
        by = "" if one.worker is None else f"worker {one.worker[:8]}"
        started = f"{attempt} started"
        events.append({"at": one.started_at, "event": started, "by": by, "reason": None})
        ended = f"{attempt} ended: {one.outcome}".replace("_", " ")
        events.append({"at": one.ended_at, "event": ended, "by": by, "reason": one.error_type})
    events += [
        {
            "at": one.created_at,
            "event": f"operation {one.operation_id}: {one.kind}, {one.outcome or 'waiting'}",
            "by": f"{who(one.actor)}, {one.source}",
            "reason": one.reason,
            "to": f"/operations/{one.operation_id}",
        }
        for one in joined
    ]
    return sorted(events, key=lambda event: event["at"])


@router.post("/jobs/{job_id}/{action}")
async def act(
    request: Request, job_id: str, action: str, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Act on the job, and show the result."""
    if action not in JOB_ACTIONS:
        raise ProblemError("not-found", "a job has no such action")
    try:
        if action == "move":
            outcome = await jobs.move(job_id, _move(fields), caller, admin)
        else:
            reason = forms.why(fields).reason
            outcome = await jobs.act(JOB_ACTIONS[action], job_id, caller, admin, reason)
    except ProblemError as problem:
        if problem.code != "wrong-state":
            raise
        return back(request, f"/jobs/{job_id}", f"Nothing changed: {problem.detail}.")
    return back(request, "/jobs" if action == "delete" else f"/jobs/{job_id}", outcome.sentence)


def _move(fields: Mapping[str, str]) -> MoveIn:
    return forms.parse(
        MoveIn,
        queue=forms.text(fields, "queue"),
        priority=forms.text(fields, "priority"),
        run_at=forms.instant(fields, "run_at"),
        reason=forms.text(fields, "reason"),
    )
