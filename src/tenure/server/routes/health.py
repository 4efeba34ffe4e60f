"""Whether the server lives, and whether it can serve. The only routes without an access token."""

import asyncio

from fastapi import APIRouter, Request
from pydantic import BaseModel

from tenure.app import Tenure
from tenure.errors import TenureError
from tenure.server.problems import Problem

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
async def ready(request: Request) -> HealthOut:
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
