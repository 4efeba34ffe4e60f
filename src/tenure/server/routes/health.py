"""Whether the server lives, which anybody may ask; whether it can serve, and what it has."""

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from tenure.errors import TenureError
from tenure.server.access import Anybody
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from tenure.app import Tenure

router: APIRouter = APIRouter(tags=["health"])
_WITHIN = 2.0


class HealthOut(BaseModel):
    """All is well."""

    status: str


@router.get("/live")
async def live() -> HealthOut:
    """Answers as long as the process runs; never asks the database."""
    return HealthOut(status="live")


@router.get("/ready")
async def ready(request: Request, _caller: Anybody) -> HealthOut:
    """Whether the database answers, and its schema fits."""
    app: Tenure = request.app.state.app
    try:
        async with asyncio.timeout(_WITHIN):
            await app.engine.arun(app.engine.check_schema())
    except TimeoutError:
        raise Problem("database-away", "the database did not answer in time") from None
    except TenureError as error:
        raise Problem("database-away", "the database does not answer, or is not fit") from error
    return HealthOut(status="ready")


@router.get("/openapi.json", include_in_schema=False)
async def document(request: Request, _caller: Anybody) -> JSONResponse:
    """This API as OpenAPI 3.1; docs/reference/openapi.json is the same."""
    return JSONResponse(request.app.openapi())
