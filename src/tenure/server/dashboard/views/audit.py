"""The audit log page."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from tenure.admin import Admin, Redactor
from tenure.server.auth import Caller
from tenure.server.dashboard.filters import brief
from tenure.server.dashboard.rendering import SAFE, render
from tenure.server.dashboard.searches import PageSearchDep
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import PageToken, RedactorDep
from tenure.server.routes import installation
from tenure.server.schemas.installation import AuditListOut, AuditOut

# The page for each kind of target.
_PLACES = {
    "job": "/jobs/{}",
    "queue": "/queues/{}",
    "schedule": "/schedules/{}",
    "operation": "/operations/{}",
    "worker": "/workers#w-{}",
    "setting": "/system#settings",
    "session": "/sessions#s-{}",
}
_ALL = "queue:*"


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed value. A side is None if the value didn't exist before or no longer exists."""

    name: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """An audit log row, its target's page, and what changed."""

    row: AuditOut
    place: str | None
    differences: Sequence[Difference]


def change(row: AuditOut) -> Change:
    """Prepare a row for display. A pause's actor and reason aren't shown twice."""
    shown = {row.actor, row.reason} - {None}
    changed = [one for one in differences(row.before, row.after) if one.now not in shown]
    return Change(row, place(row.target), changed)


def place(target: str) -> str | None:
    """Return a target's page."""
    kind, _, name = target.partition(":")
    if target == _ALL:
        return "/queues"
    return _PLACES[kind].format(quote(name)) if kind in _PLACES and name else None


def differences(before: Any, after: Any) -> list[Difference]:
    """Compare two values, field by field if both are objects."""
    if before is None and after is None:
        return []
    if not isinstance(before or {}, dict) or not isinstance(after or {}, dict):
        return [Difference("", _shown(before), _shown(after))]
    was, now = before or {}, after or {}
    names = [*now, *(name for name in was if name not in now)]
    return [
        Difference(name, _shown(was.get(name)), _shown(now.get(name)))
        for name in names
        if was.get(name) != now.get(name)
    ]


def _shown(value: Any) -> str | None:
    return None if value is None else brief(value)


router: APIRouter = APIRouter()
_PAGE = 100
_EXPORTED_AT_ONCE = 200
_MOST_EXPORTED = 10_000
SOURCES = ("page", "http", "cli", "python", "code", "server")


class _AuditFilter(BaseModel):
    """The page's filter. Empty form fields don't filter."""

    target: str | None = None
    actor: str | None = None
    source: str | None = None
    action: str | None = None
    enqueued: bool = False

    @property
    def query(self) -> dict[str, str]:
        """The fields that are set, for a query string."""
        names = ("target", "actor", "source", "action")
        fields = {name: getattr(self, name) for name in names if getattr(self, name)}
        return fields | ({"enqueued": "yes"} if self.enqueued else {})


async def _wanted(
    target: Annotated[str, Query(max_length=300)] = "",
    actor: Annotated[str, Query(max_length=200)] = "",
    source: Annotated[str, Query(max_length=50)] = "",
    action: Annotated[str, Query(max_length=100)] = "",
    *,
    enqueued: bool = False,
) -> _AuditFilter:
    texts = (target, actor, source, action)
    target, actor, source, action = (text.strip() for text in texts)
    return _AuditFilter(target=target, actor=actor, source=source, action=action, enqueued=enqueued)


Wanted = Annotated[_AuditFilter, Depends(_wanted)]


@router.get("/audit")
async def audit(
    request: Request,
    caller: Looking,
    admin: PageSearchDep,
    hiding: RedactorDep,
    wanted: Wanted,
    page_token: PageToken = None,
) -> Response:
    """Show what operators changed, newest first."""
    page = await _page(caller, admin, hiding, wanted, _PAGE, page_token)
    query = wanted.query
    return render(
        request,
        caller,
        "audit.html",
        changes=[change(row) for row in page.changes],
        searched=page.searched,
        wanted=wanted,
        filtered=bool(query),
        sources=SOURCES,
        first=f"/audit?{urlencode(query)}" if page_token else None,
        next=_next(page, query),
        export=f"/audit/export?{urlencode(query)}",
        most=_MOST_EXPORTED,
    )


def _next(page: AuditListOut, query: dict[str, str]) -> str | None:
    if page.next_page_token is None:
        return None
    return f"/audit?{urlencode(query | {'page_token': page.next_page_token})}"


@router.get("/audit/export")
async def export(
    caller: Looking, admin: PageSearchDep, hiding: RedactorDep, wanted: Wanted
) -> StreamingResponse:
    """Export the newest matches, one JSON object per line."""
    # Reject the request before the first line is sent.
    first = await _page(caller, admin, hiding, wanted, _EXPORTED_AT_ONCE, None)
    headers = {
        **SAFE,
        "Cache-Control": "no-store",
        "Content-Disposition": 'attachment; filename="audit.ndjson"',
    }
    caller.exports("audit")
    lines = _lines(first, caller, admin, hiding, wanted)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


async def _lines(
    page: AuditListOut, caller: Caller, admin: Admin, hiding: Redactor, wanted: _AuditFilter
) -> AsyncIterator[str]:
    sent = 0
    while True:
        for row in page.changes[: _MOST_EXPORTED - sent]:
            yield f"{row.model_dump_json()}\n"
        sent += len(page.changes)
        if page.next_page_token is None or sent >= _MOST_EXPORTED:
            return
        page = await _page(caller, admin, hiding, wanted, _EXPORTED_AT_ONCE, page.next_page_token)


async def _page(
    caller: Caller,
    admin: Admin,
    hiding: Redactor,
    wanted: _AuditFilter,
    size: int,
    token: str | None,
) -> AuditListOut:
    return await installation.audit(
        caller,
        admin,
        hiding,
        target=wanted.target or None,
        actor=wanted.actor,
        source=wanted.source,
        action=wanted.action,
        # A single target's history also shows how the target was created.
        enqueued=wanted.enqueued or bool(wanted.target) or wanted.action == "enqueue",
        page_size=size,
        page_token=token,
    )
