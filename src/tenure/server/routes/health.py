"""Routes /live, /ready and /metrics."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Security
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials
from pydantic import BaseModel, Field

from tenure import _metrics
from tenure._metrics import CONTENT_TYPE, MetricsPage
from tenure.errors import StoreError, TenureError
from tenure.server.auth import Anybody, Caller, bearer, caller
from tenure.server.metrics import exposition as figures
from tenure.server.problems import ProblemError
from tenure.types import Scope

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.gateway import Remote
    from tenure.server.auth import TokenCache
    from tenure.server.metrics.collector import Collector


router: APIRouter = APIRouter(tags=["health"])
_WITHIN = 2.0


class HealthOut(BaseModel):
    """The server's status."""

    status: Annotated[str, Field(description="`live` or `ready`.")]


@router.get("/live")
async def live() -> HealthOut:
    """Check that the process is running, for liveness probes. Doesn't query the database."""
    return HealthOut(status="live")


@router.get("/ready")
async def ready(request: Request, _caller: Anybody) -> HealthOut:
    """Check that the database responds and its schema is compatible, for readiness probes."""
    app: Tenure = request.app.state.app
    try:
        async with asyncio.timeout(_WITHIN):
            await app.engine.arun(app.engine.store.schema.check())
    except TimeoutError:
        raise ProblemError("database-away", "the database did not answer in time") from None
    except TenureError as error:
        raise ProblemError(
            "database-away",
            "the database does not answer, or its schema does not fit. Run: tenure doctor",
        ) from error
    return HealthOut(status="ready")


@router.get("/openapi.json", include_in_schema=False)
async def document(request: Request, _caller: Anybody) -> JSONResponse:
    """Get this API as an OpenAPI 3.1 document."""
    return JSONResponse(request.app.openapi())


metrics_router: APIRouter = APIRouter(tags=["metrics"])


async def scraper(
    request: Request, sent: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
) -> Caller:
    """Authenticate a scraper.

    If the database is down, accept a token that was valid recently, so that the metrics can report
    the outage.
    """
    try:
        async with asyncio.timeout(_WITHIN):
            asking = await caller(request, sent)
    except (StoreError, TimeoutError):
        keys: TokenCache = request.app.state.keys
        row = None if sent is None else keys.remembered(sent.credentials)
        if row is None:
            raise ProblemError("database-away", "the database did not answer in time") from None
        asking = Caller.of(row)
    asking.must(Scope.READ)
    return asking


@metrics_router.get("/metrics", response_class=PlainTextResponse)
async def metrics(
    request: Request, _caller: Annotated[Caller, Security(scraper, scopes=[Scope.READ.value])]
) -> PlainTextResponse:
    """Get metrics in Prometheus text format, at most 5 s old. Needs `read` for all queues. If the
    database is down, `tenure_database_up` is 0.
    """
    state = request.app.state
    rounds: Collector = state.rounds
    remote: Remote = state.remote
    page = MetricsPage()
    figures.write(page, rounds, await rounds.latest())
    page.put(_metrics.STARTED, state.started_at)
    for labels, count in state.requests.items():
        page.put(_metrics.REQUESTS, count, *labels)
    page.put(_metrics.WAITING, remote.waiting)
    return PlainTextResponse(page.text(), media_type=CONTENT_TYPE)
