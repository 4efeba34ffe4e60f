"""The queue as a service: an HTTP API, a dashboard, the worker protocol.

The queue as a service: an HTTP API, and the worker protocol for any language.

It needs the extra `tenure[server]`. `create` makes the program; `tenure server` runs it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import time

from fastapi import FastAPI

from tenure.app import Tenure
from tenure.gateway import Remote
from tenure.server import dashboard, openapi, problems
from tenure.server.auth import TokenCache
from tenure.server.cache import SingleFlightCache
from tenure.server.dashboard import charts
from tenure.server.dashboard.live import LiveUpdates
from tenure.server.metrics.collector import Collector
from tenure.server.metrics.exposition import Requests
from tenure.server.request_limits import Limits
from tenure.server.routes import (
    health,
    installation,
    jobs,
    leases,
    operations,
    schedules,
    stats,
    system,
    tokens,
)


@dataclass(frozen=True, slots=True)
class Badge:
    """A word and its colour (red, amber, green, blue or grey), beside the name on every page."""

    word: str
    colour: str = "grey"


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
        news = LiveUpdates()
        remote = Remote(app, name=name, on_wakeup=news.notify)
        keys = TokenCache(admin)
        api.state.app, api.state.admin, api.state.remote, api.state.keys = app, admin, remote, keys
        api.state.news = news
        api.state.rounds, api.state.started_at = Collector(admin), time()
        api.state.depths = SingleFlightCache(admin.queues.adepths, fresh=_FRESH, oldest=_OLDEST)
        api.state.overview = SingleFlightCache(admin.aoverview, fresh=_FRESH, oldest=_OLDEST)
        api.state.charts = charts.shared(admin)
        api.state.findings = SingleFlightCache(admin.adoctor, fresh=_FINDINGS_FRESH)
        noting = asyncio.create_task(keys.record_usage_forever())
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
        responses=openapi.RESPONSES,
    )
    api.state.requests = Counter()
    api.state.badge = badge
    api.add_middleware(Limits)
    api.add_middleware(Requests, counts=api.state.requests)
    problems.install(api)
    openapi.install(api)
    for routes in (
        *(health, jobs, stats, leases, schedules, installation, operations, tokens),
        system,
    ):
        api.include_router(routes.router)
    api.include_router(health.metrics_router)
    dashboard.install(api)
    return api
