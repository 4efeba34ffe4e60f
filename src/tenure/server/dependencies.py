"""What routes are given: commands, redaction, trace context.

W3C trace context: noted with the jobs that a request asks for, and given to who works on them.

What cannot be read is left out, as the standard wants it, and refuses nothing. The names are those
that `tenure.contrib.otel` notes.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Body, Depends, Header, Query, Request

from tenure._actions import DELETE
from tenure.admin import Admin, Redactor
from tenure.server.auth import Caller
from tenure.server.problems import ProblemError
from tenure.server.schemas.base import ReasonIn
from tenure.types import JobRow, Scope

_BIGGEST_ID = 2**63


async def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


async def _redactor(admin: Annotated[Admin, Depends(_admin)]) -> Redactor:
    return await admin.settings.aredactor()


AdminDep = Annotated[Admin, Depends(_admin)]
RedactorDep = Annotated[Redactor, Depends(_redactor)]
ReasonBody = Annotated[ReasonIn, Body(default_factory=ReasonIn)]
PageSize = Annotated[int, Query(ge=1, le=200, description="At most so many.")]
PageToken = Annotated[
    str | None, Query(max_length=200, description="The last page's `next_page_token`.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same request with the same key within a day makes nothing more.",
    ),
]


def read_id(text: str) -> int:
    """The number that an id stands for; 404 for what is none."""
    if not (text.isascii() and text.isdigit()) or int(text[:20]) >= _BIGGEST_ID or len(text) > 19:
        raise ProblemError("not-found", "there is no job with this id")
    return int(text)


async def seen_job(admin: Admin, job_id: str, caller: Caller, scope: Scope) -> JobRow:
    """The job, if this may be done to it; else it is as if there were none."""
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
    """The trace context among these notes; a state is worth nothing without its parent."""
    parent, state = notes.get("traceparent"), notes.get("tracestate")
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return {}
    if not isinstance(state, str) or not _STATE.fullmatch(state):
        return {"traceparent": parent}
    return {"traceparent": parent, "tracestate": state}


async def _sent(
    traceparent: Annotated[
        str | None, Header(description="W3C trace context; it goes with the job.")
    ] = None,
    tracestate: Annotated[str | None, Header(description="What belongs to it.")] = None,
) -> dict[str, str]:
    return read_trace({"traceparent": traceparent, "tracestate": tracestate})


Traced = Annotated[dict[str, str], Depends(_sent)]
