"""The audit: who changed what, from where and why; found by any of it, and taken away as NDJSON."""

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from tenure.admin import Admin, Redactor
from tenure.server.access import Caller
from tenure.server.pages.changes import change
from tenure.server.pages.rendering import SAFE, render
from tenure.server.pages.visiting import Looking
from tenure.server.parts import Hiding, PageToken, Verbs
from tenure.server.routes import installation
from tenure.server.shapes.installation import AuditListOut

router: APIRouter = APIRouter()
_PAGE = 100
_EXPORTED_AT_ONCE = 200
_MOST_EXPORTED = 10_000
SOURCES = ("page", "http", "cli", "python", "code", "server")


class _Wanted(BaseModel):
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
) -> _Wanted:
    words = (target, actor, source, action)
    target, actor, source, action = (word.strip() for word in words)
    return _Wanted(target=target, actor=actor, source=source, action=action, enqueued=enqueued)


Wanted = Annotated[_Wanted, Depends(_wanted)]


@router.get("/audit")
async def audit(
    request: Request,
    caller: Looking,
    admin: Verbs,
    hiding: Hiding,
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
    caller: Looking, admin: Verbs, hiding: Hiding, wanted: Wanted
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
    page: AuditListOut, caller: Caller, admin: Admin, hiding: Redactor, wanted: _Wanted
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
    wanted: _Wanted,
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
