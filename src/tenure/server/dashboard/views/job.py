"""The job page: its timeline, lease, payload and actions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure._actions import JOB_ACTIONS, Outcome
from tenure.admin import Admin, Redactor, allows_task
from tenure.server import request_limits
from tenure.server.auth import Caller
from tenure.server.dashboard import filters, forms, timeline
from tenure.server.dashboard.filters import shown_as, who
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep, QuotasDep, RedactorDep
from tenure.server.problems import ProblemError
from tenure.server.quotas import QuotaKeeper
from tenure.server.routes import installation, jobs, stats
from tenure.server.schemas.installation import AuditOut
from tenure.server.schemas.jobs import (
    AttemptOut,
    EditIn,
    JobOut,
    MembershipOut,
    MoveIn,
    RerunIn,
    RetryIn,
)
from tenure.types import EVERY_QUEUE, Scope

router: APIRouter = APIRouter()
TABS = ("arguments", "result", "items", "errors", "log", "events", "raw")
_ITEMS = 100
# Larger arguments are not put into a form.
_LARGEST_IN_FORM = 16 * 1024


@dataclass(frozen=True, slots=True)
class ArgumentsField:
    """A form's field for arguments. An unchanged or empty field leaves them as they are."""

    text: str
    is_hidden: bool
    is_sealed: bool

    @property
    def digest(self) -> str:
        """A digest of the text, to recognize an unchanged field."""
        return _digest(self.text) if self.text else ""


def _digest(text: str) -> str:
    # Browsers submit lines that end with CRLF.
    return hashlib.sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()


def _arguments_field(job: JobOut, caller: Caller) -> ArgumentsField | None:
    """Return the field, or None if the caller may not set the job's arguments.

    The field starts with the stored arguments only if all of them are shown. A value such as
    `<redacted>` would look like a real one there, and could be sent back.
    """
    if not caller.may(Scope.ENQUEUE, job.queue) or not allows_task(caller.grant, job.task):
        return None
    is_sealed = isinstance(job.args, dict) and "$sealed" in job.args
    is_hidden = not job.payload or Redactor.has_marks(job.args)
    text = "" if is_hidden else filters.pretty(job.args)
    return ArgumentsField(text if len(text) <= _LARGEST_IN_FORM else "", is_hidden, is_sealed)


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
        arguments=_arguments_field(job, caller),
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
    request: Request,
    job_id: str,
    action: str,
    caller: Operating,
    admin: AdminDep,
    quotas: QuotasDep,
    fields: Sent,
) -> Response:
    """Act on the job, and show the result."""
    if action not in JOB_ACTIONS:
        raise ProblemError("not-found", "a job has no such action")
    try:
        outcome = await _act(action, job_id, caller, admin, quotas, fields)
    except ProblemError as problem:
        if problem.code != "wrong-state":
            raise
        return back(request, f"/jobs/{job_id}", f"Nothing changed: {problem.detail}.")
    place = f"/jobs/{outcome.job or job_id}"
    return back(request, "/jobs" if action == "delete" else place, outcome.sentence)


async def _act(
    action: str,
    job_id: str,
    caller: Caller,
    admin: Admin,
    quotas: QuotaKeeper,
    fields: Mapping[str, str],
) -> Outcome:
    match action:
        case "move":
            return await jobs.move(job_id, _move(fields), caller, admin)
        case "edit":
            return await jobs.edit(job_id, _edit(fields), caller, admin, quotas)
        case "retry":
            body = forms.parse(RetryIn, args=_args(fields), reason=forms.text(fields, "reason"))
            return await jobs.retry(job_id, body, caller, admin, quotas)
        case "rerun":
            return await jobs.rerun(job_id, _rerun(fields), caller, admin, quotas)
        case _:
            reason = forms.why(fields).reason
            return await jobs.act(JOB_ACTIONS[action], job_id, caller, admin, reason)


def _args(fields: Mapping[str, str]) -> Any:
    """Return the new arguments, or None if the field is empty or unchanged."""
    text = forms.text(fields, "args")
    if text is None or _digest(text) == fields.get("args_shown"):
        return None
    # The form's encoding hides brackets from the check of the body.
    request_limits.check(text.encode())
    try:
        return json.loads(text)
    except ValueError:
        raise ProblemError(
            "invalid", 'args must be a JSON object, such as {"to": "ada"}. Check its syntax'
        ) from None


def _edit(fields: Mapping[str, str]) -> EditIn:
    tags = forms.text(fields, "tags")
    return forms.parse(
        EditIn,
        args=_args(fields),
        priority=forms.text(fields, "priority"),
        run_at=forms.instant(fields, "run_at"),
        max_attempts=forms.text(fields, "max_attempts"),
        timeout=forms.text(fields, "timeout"),
        tags=None if tags is None else [tag.strip() for tag in tags.split(",")],
        reason=forms.text(fields, "reason"),
    )


def _rerun(fields: Mapping[str, str]) -> RerunIn:
    return forms.parse(
        RerunIn,
        args=_args(fields),
        keep_key="keep_key" in fields,
        reason=forms.text(fields, "reason"),
    )


def _move(fields: Mapping[str, str]) -> MoveIn:
    return forms.parse(
        MoveIn,
        queue=forms.text(fields, "queue"),
        priority=forms.text(fields, "priority"),
        run_at=forms.instant(fields, "run_at"),
        reason=forms.text(fields, "reason"),
    )
