"""The queue as a service: an HTTP API, and the worker protocol for any language.

It needs the extra `tenure[server]`. `create` makes the program; `tenure server` runs it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI

from tenure.app import Tenure
from tenure.remote import Remote
from tenure.server import problems
from tenure.server.keys import Keys
from tenure.server.limits import Limits
from tenure.server.routes import (
    figures,
    health,
    installation,
    jobs,
    leases,
    operations,
    tokens,
)
from tenure.server.shapes.base import ProblemOut

__all__ = ["create"]

_DESCRIPTION = """\
Background jobs under leases. Every request but `/live` needs an access token
(`tenure token create`); what is refused is told as a problem by RFC 9457, with a stable `code`.
"""
_PROBLEM: dict[str, Any] = {
    "description": "A problem",
    "content": {"application/problem+json": {"schema": ProblemOut.model_json_schema()}},
}


def create(app: Tenure, *, name: str = "server") -> FastAPI:
    """The program that serves this app's database."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        admin = app.admin
        remote = Remote(app, name=name)
        keys = Keys(admin)
        api.state.app, api.state.admin, api.state.remote, api.state.keys = app, admin, remote, keys
        noting = asyncio.create_task(keys.keep_noting())
        try:
            async with remote.running():
                yield
        finally:
            noting.cancel()
            with suppress(asyncio.CancelledError):
                await noting
            await app.aclose()

    # Without an access token nothing is shown, the document of the API neither.
    api = FastAPI(
        title="Tenure",
        version="1",
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        responses=dict.fromkeys((422, "default"), _PROBLEM),
    )
    api.add_middleware(Limits)
    problems.install(api)
    for routes in (health, jobs, figures, leases, installation, operations, tokens):
        api.include_router(routes.router)
    return api
