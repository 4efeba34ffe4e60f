"""Metrics for Prometheus, of the whole installation and of this process."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Security
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials

from tenure.admin import Scope
from tenure.errors import StoreError
from tenure.metrics import CONTENT_TYPE, Page, table
from tenure.server.access import Caller, bearer, caller
from tenure.server.metrics import page as figures
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from tenure.remote import Remote
    from tenure.server.keys import Keys
    from tenure.server.metrics.rounds import Rounds

router: APIRouter = APIRouter(tags=["metrics"])
_WITHIN = 2.0


async def scraper(
    request: Request, sent: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
) -> Caller:
    """Whoever scrapes. While the database is away, who was let in lately is let in: that it is away
    is what they are to be told."""
    try:
        async with asyncio.timeout(_WITHIN):
            asking = await caller(request, sent)
    except (StoreError, TimeoutError):
        keys: Keys = request.app.state.keys
        row = None if sent is None else keys.remembered(sent.credentials)
        if row is None:
            raise Problem("database-away", "the database did not answer in time") from None
        asking = Caller(row.id, row.name, row.grant)
    asking.must(Scope.READ)
    return asking


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(
    request: Request, _caller: Annotated[Caller, Security(scraper, scopes=[Scope.READ.value])]
) -> PlainTextResponse:
    """Metrics in Prometheus' text format. The database is asked at most every 5 s, for all who
    scrape; while it is away, `tenure_database_up` is 0."""
    state = request.app.state
    rounds: Rounds = state.rounds
    remote: Remote = state.remote
    page = Page()
    figures.write(page, rounds, await rounds.latest())
    page.put(table.STARTED, state.started_at)
    for labels, count in state.requests.items():
        page.put(table.REQUESTS, count, *labels)
    page.put(table.WAITING, remote.waiting)
    return PlainTextResponse(page.text(), media_type=CONTENT_TYPE)
