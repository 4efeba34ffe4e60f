"""The queue as a service: an HTTP API, and the worker protocol for any language.

It needs the extra `tenure[server]`. `create` makes the program; `tenure server` runs it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import time

from fastapi import FastAPI

from tenure.app import Tenure
from tenure.remote import Remote
from tenure.server import document, pages, problems
from tenure.server.badge import Badge
from tenure.server.keys import Keys
from tenure.server.limits import Limits
from tenure.server.metrics.requests import Requests
from tenure.server.metrics.rounds import Rounds
from tenure.server.pages.live import Broadcaster
from tenure.server.routes import (
    figures,
    glance,
    health,
    installation,
    jobs,
    leases,
    metrics,
    operations,
    schedules,
    system,
    tokens,
)
from tenure.server.shared import Shared

__all__ = ["Badge", "create"]

# Counting is dear where there is much to count; pages and autoscalers ask every few seconds.
_FRESH, _OLDEST = 0.5, 10.0
# An examination opens connections, and what it finds lasts.
_FINDINGS_FRESH = 15.0

_DESCRIPTION = """\
Background jobs under leases. Every request but `/live` needs an access token
(`tenure token create`); what is refused is told as a problem by RFC 9457, with a stable `code`.
"""


def create(app: Tenure, *, name: str = "server", badge: Badge | None = None) -> FastAPI:
    """The program that serves this app's database; the dashboard shows the badge beside its
    name."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        admin = app.admin
        news = Broadcaster()
        remote = Remote(app, name=name, overheard_by=news.hear)
        keys = Keys(admin)
        api.state.app, api.state.admin, api.state.remote, api.state.keys = app, admin, remote, keys
        api.state.news = news
        api.state.rounds, api.state.started_at = Rounds(admin), time()
        api.state.depths = Shared(admin.adepths, fresh=_FRESH, oldest=_OLDEST)
        api.state.overview = Shared(admin.aoverview, fresh=_FRESH, oldest=_OLDEST)
        api.state.charts = pages.charts(admin)
        api.state.findings = Shared(admin.adoctor, fresh=_FINDINGS_FRESH)
        noting = asyncio.create_task(keys.keep_noting())
        try:
            async with remote.running(), news.running():
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
        responses=document.RESPONSES,
    )
    api.state.requests = Counter()
    api.state.badge = badge
    api.add_middleware(Limits)
    api.add_middleware(Requests, counts=api.state.requests)
    problems.install(api)
    document.install(api)
    for routes in (
        *(health, jobs, figures, glance, leases, schedules, installation, operations, tokens),
        *(system, metrics),
    ):
        api.include_router(routes.router)
    pages.install(api)
    return api
