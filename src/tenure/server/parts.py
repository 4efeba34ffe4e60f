"""What routes are given of the program that they are part of."""

from typing import Annotated

from fastapi import Body, Depends, Header, Query, Request

from tenure.admin import Admin, JobRow, Redactor, Scope
from tenure.server.access import Caller
from tenure.server.problems import Problem
from tenure.server.shapes.base import ReasonIn

_BIGGEST_ID = 2**63


async def _admin(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


async def _redactor(admin: Annotated[Admin, Depends(_admin)]) -> Redactor:
    return await admin.aredactor()


Verbs = Annotated[Admin, Depends(_admin)]
Hiding = Annotated[Redactor, Depends(_redactor)]
Why = Annotated[ReasonIn, Body(default_factory=ReasonIn)]
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
        raise Problem("not-found", "there is no job with this id")
    return int(text)


async def seen_job(admin: Admin, job_id: str, caller: Caller, scope: Scope) -> JobRow:
    """The job, if this may be done to it; else it is as if there were none."""
    row = await admin.ajob(read_id(job_id))
    if row is None or not caller.may(scope, row.queue):
        raise Problem("not-found", "there is no job with this id, or none that you may see")
    return row
