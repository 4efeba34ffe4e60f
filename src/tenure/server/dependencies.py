"""Route dependencies: commands, redaction and trace context.

If a request enqueues jobs, its W3C trace context is stored with them and passed to their workers.

Trace context that can't be parsed is ignored, as the standard requires, and never causes a request
to be rejected. `tenure.contrib.otel` stores it under the same field names.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Body, Depends, Header, Query, Request

from tenure._actions import DELETE
from tenure.admin import Admin, Redactor
from tenure.server.auth import Anybody, Caller
from tenure.server.problems import ProblemError
from tenure.server.quotas import QuotaKeeper
from tenure.server.schemas.base import ReasonIn
from tenure.types import JobRow, Scope

if TYPE_CHECKING:
    from tenure.server.throttle import Turns

_BIGGEST_ID = 2**63


async def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


async def _redactor(admin: Annotated[Admin, Depends(_admin)]) -> Redactor:
    return await admin.settings.aredactor()


async def _quotas(request: Request) -> QuotaKeeper:
    quotas: QuotaKeeper = request.app.state.quotas
    return quotas


QuotasDep = Annotated[QuotaKeeper, Depends(_quotas)]


@asynccontextmanager
async def search_turn(request: Request, caller: Caller) -> AsyncIterator[Admin]:
    """Wait for the caller's turn to search, and return commands that use the search connections."""
    turns: Turns = request.app.state.search_turns
    async with turns.turn(caller.id):
        yield request.app.state.searches


async def _searching(request: Request, caller: Anybody) -> AsyncIterator[Admin]:
    async with search_turn(request, caller) as admin:
        yield admin


AdminDep = Annotated[Admin, Depends(_admin)]
SearchDep = Annotated[Admin, Depends(_searching)]
RedactorDep = Annotated[Redactor, Depends(_redactor)]
ReasonBody = Annotated[ReasonIn, Body(default_factory=ReasonIn)]
PageSize = Annotated[int, Query(ge=1, le=200, description="Maximum number of rows.")]
PageToken = Annotated[
    str | None, Query(max_length=400, description="`next_page_token` of the previous page.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeat the request with the same key within 24 h, and no new job is created.",
    ),
]


def read_id(text: str) -> int:
    """Parse an id, or fail with 404."""
    if not (text.isascii() and text.isdigit()) or int(text[:20]) >= _BIGGEST_ID or len(text) > 19:
        raise ProblemError("not-found", "there is no job with this id")
    return int(text)


async def seen_job(admin: Admin, job_id: str, caller: Caller, scope: Scope) -> JobRow:
    """Return the job. Fail with 404 if it doesn't exist or the caller isn't allowed to see it."""
    number = read_id(job_id)
    row = await admin.jobs.aget(number)
    if row is None or not caller.may(scope, row.queue):
        raise ProblemError("not-found", DELETE.outcome(number, "not_found").sentence)
    return row


_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII
)
_STATE = re.compile(r"[\x20-\x7e]{1,512}", re.ASCII)


def read_trace(notes: Mapping[str, Any]) -> dict[str, str]:
    """Read the trace context. `tracestate` is ignored without `traceparent`."""
    parent, state = notes.get("traceparent"), notes.get("tracestate")
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return {}
    if not isinstance(state, str) or not _STATE.fullmatch(state):
        return {"traceparent": parent}
    return {"traceparent": parent, "tracestate": state}


async def _sent(
    traceparent: Annotated[
        str | None, Header(description="W3C trace context, stored with the job.")
    ] = None,
    tracestate: Annotated[str | None, Header(description="W3C trace state.")] = None,
) -> dict[str, str]:
    return read_trace({"traceparent": traceparent, "tracestate": tracestate})


Traced = Annotated[dict[str, str], Depends(_sent)]
