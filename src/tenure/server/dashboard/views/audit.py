"""The page of the audit."""

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
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import AdminDep, PageToken, RedactorDep
from tenure.server.routes import installation
from tenure.server.schemas.installation import AuditListOut, AuditOut

# Where a target of this kind is looked at.
_PLACES = {
    "job": "/jobs/{}",
    "queue": "/queues/{}",
    "schedule": "/schedules/{}",
    "operation": "/operations/{}",
    "worker": "/workers#w-{}",
    "setting": "/system#settings",
}
_ALL = "queue:*"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is different; None where it was, or is, not there."""

    name: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the audit, the page of its target if there is one, and what is different."""

    row: AuditOut
    place: str | None
    differences: Sequence[Difference]


def change(row: AuditOut) -> Change:
    """The row as it is shown. Who has paused something, and why, is not told twice."""
    told = {row.actor, row.reason} - {None}
    found = [one for one in differences(row.before, row.after) if one.now not in told]
    return Change(row, place(row.target), found)


def place(target: str) -> str | None:
    """The page of a target."""
    kind, _, name = target.partition(":")
    if target == _ALL:
        return "/queues"
    return _PLACES[kind].format(quote(name)) if kind in _PLACES and name else None


def differences(before: Any, after: Any) -> list[Difference]:
    """What is different: by name where both sides have names."""
    if before is None and after is None:
        return []
    if not isinstance(before or {}, dict) or not isinstance(after or {}, dict):
        return [Difference("", _told(before), _told(after))]
    was, now = before or {}, after or {}
    names = [*now, *(name for name in was if name not in now)]
    return [
        Difference(name, _told(was.get(name)), _told(now.get(name)))
        for name in names
        if was.get(name) != now.get(name)
    ]


def _told(value: Any) -> str | None:
    return None if value is None else brief(value)


router: APIRouter = APIRouter()
_PAGE = 100
_EXPORTED_AT_ONCE = 200
_MOST_EXPORTED = 10_000
SOURCES = ("page", "http", "cli", "python", "code", "server")


class _AuditFilter(BaseModel):
    """What is looked for. A field that was left empty in the form is not meant."""

    target: str | None = None
    actor: str | None = None
    source: str | None = None
    action: str | None = None
    enqueued: bool = False

    @property
    def said(self) -> dict[str, str]:
        """What was given, as an address has it."""
        words = ("target", "actor", "source", "action")
        said = {name: getattr(self, name) for name in words if getattr(self, name)}
        return said | ({"enqueued": "yes"} if self.enqueued else {})


async def _wanted(
    target: Annotated[str, Query(max_length=300)] = "",
    actor: Annotated[str, Query(max_length=200)] = "",
    source: Annotated[str, Query(max_length=50)] = "",
    action: Annotated[str, Query(max_length=100)] = "",
    *,
    enqueued: bool = False,
) -> _AuditFilter:
    words = (target, actor, source, action)
    target, actor, source, action = (word.strip() for word in words)
    return _AuditFilter(target=target, actor=actor, source=source, action=action, enqueued=enqueued)


Wanted = Annotated[_AuditFilter, Depends(_wanted)]


@router.get("/audit")
async def audit(
    request: Request,
    caller: Looking,
    admin: AdminDep,
    hiding: RedactorDep,
    wanted: Wanted,
    page_token: PageToken = None,
) -> Response:
    """What operators did, newest first."""
    page = await _page(caller, admin, hiding, wanted, _PAGE, page_token)
    said = wanted.said
    return render(
        request,
        caller,
        "audit.html",
        changes=[change(row) for row in page.changes],
        searched=page.searched,
        wanted=wanted,
        filtered=bool(said),
        sources=SOURCES,
        first=f"/audit?{urlencode(said)}" if page_token else None,
        next=_next(page, said),
        export=f"/audit/export?{urlencode(said)}",
        most=_MOST_EXPORTED,
    )


def _next(page: AuditListOut, said: dict[str, str]) -> str | None:
    if page.next_page_token is None:
        return None
    return f"/audit?{urlencode(said | {'page_token': page.next_page_token})}"


@router.get("/audit/export")
async def export(
    caller: Looking, admin: AdminDep, hiding: RedactorDep, wanted: Wanted
) -> StreamingResponse:
    """The newest that match, one JSON object per line."""
    # Whoever may not is told so before the first line.
    first = await _page(caller, admin, hiding, wanted, _EXPORTED_AT_ONCE, None)
    headers = {
        **SAFE,
        "Cache-Control": "no-store",
        "Content-Disposition": 'attachment; filename="audit.ndjson"',
    }
    lines = _lines(first, caller, admin, hiding, wanted)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


async def _lines(
    page: AuditListOut, caller: Caller, admin: Admin, hiding: Redactor, wanted: _AuditFilter
) -> AsyncIterator[str]:
    told = 0
    while True:
        for row in page.changes[: _MOST_EXPORTED - told]:
            yield f"{row.model_dump_json()}\n"
        told += len(page.changes)
        if page.next_page_token is None or told >= _MOST_EXPORTED:
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
        # Whoever looks at one job wants to see where it came from.
        enqueued=wanted.enqueued or bool(wanted.target) or wanted.action == "enqueue",
        page_size=size,
        page_token=token,
    )
