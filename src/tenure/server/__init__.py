"""The server: an HTTP API, the dashboard, and the worker protocol for any language.

The server needs the `tenure[server]` extra. `create` builds the ASGI app, and `tenure server` runs
it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from secrets import token_bytes
from time import time

from fastapi import FastAPI

from tenure.admin import Admin
from tenure.app import Tenure
from tenure.gateway import Remote
from tenure.server import dashboard, openapi, problems
from tenure.server.access_log import AccessLog
from tenure.server.auth import TokenCache
from tenure.server.cache import SingleFlightCache
from tenure.server.dashboard import charts
from tenure.server.dashboard.live import LiveUpdates
from tenure.server.front import Front, ServerOptions
from tenure.server.metrics.collector import Collector
from tenure.server.metrics.exposition import Requests
from tenure.server.quotas import QuotaKeeper
from tenure.server.request_limits import Limits
from tenure.server.routes import (
    health,
    installation,
    jobs,
    keys,
    leases,
    notices,
    operations,
    schedules,
    sessions,
    stats,
    system,
    tokens,
)
from tenure.server.session_cache import SessionCache
from tenure.server.strangers import Strangers
from tenure.server.throttle import Turns


@dataclass(frozen=True, slots=True)
class Badge:
    """A label in a color (red, amber, green, blue or grey) that is shown on every page."""

    word: str
    colour: str = "grey"


__all__ = ["Badge", "ServerOptions", "create"]

# Counting is expensive in large queues, and pages and autoscalers poll every few seconds.
_FRESH, _OLDEST = 0.5, 10.0
# The doctor opens connections, and its findings rarely change.
_FINDINGS_FRESH = 15.0

# How many requests may wait for a connection before further ones get a 429.
_WAITING = 100
# Searches get this many connections of their own, so they can't exhaust the ones that other
# requests need.
_SEARCHES = 3

_DESCRIPTION = """\
Durable background jobs on PostgreSQL. Every request except `GET /live` needs an access token
(`tenure token create NAME --scope read`). Errors are RFC 9457 problems with a stable `code`.
"""


def create(
    app: Tenure,
    *,
    name: str = "server",
    badge: Badge | None = None,
    options: ServerOptions | None = None,
) -> FastAPI:
    """Create the server's ASGI app.

    Args:
        app: The app whose database the server uses.
        name: This server's name in the worker list.
        badge: A label shown on every page, such as the environment.
        options: The public address, trusted proxies and dashboard sessions.
    """
    options = options or ServerOptions()
    access = AccessLog(app.admin, name=name)

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        admin = app.admin
        news = LiveUpdates()
        remote = Remote(app, name=name, on_wakeup=news.notify)
        # Only requests that change leases, or come from a known client, may wait for these
        # connections.
        app.engine.limit_waiting(_WAITING)
        strangers = api.state.strangers = Strangers(app)
        keys = TokenCache(strangers, known=Admin(remote.lease_engine))
        api.state.sessions = SessionCache(strangers, admin)
        api.state.app, api.state.admin, api.state.remote, api.state.keys = app, admin, remote, keys
        api.state.news, api.state.quotas = news, QuotaKeeper(admin)
        api.state.searches = Admin(
            app.engine.reserve_pool("searches", connections=_SEARCHES, waiting=_WAITING)
        )
        api.state.search_turns = Turns(2, waiting=20)
        api.state.lease_turns = Turns(3, waiting=300)
        api.state.rounds, api.state.started_at = Collector(admin), time()
        api.state.depths = SingleFlightCache(admin.queues.adepths, fresh=_FRESH, oldest=_OLDEST)
        api.state.overview = SingleFlightCache(admin.aoverview, fresh=_FRESH, oldest=_OLDEST)
        api.state.charts = charts.shared(admin)
        api.state.findings = SingleFlightCache(admin.adoctor, fresh=_FINDINGS_FRESH)
        noting = asyncio.create_task(keys.record_usage_forever())
        recording = asyncio.create_task(access.flush_forever())
        try:
            async with remote.running(), news.running():
                yield
        finally:
            for task in (noting, recording):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await app.aclose()

    # The OpenAPI document needs an access token too, so FastAPI doesn't serve it.
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
    api.state.options, api.state.access = options, access
    api.state.page_key = token_bytes(32)
    api.add_middleware(Limits)
    api.add_middleware(Front, options=options, access=access)
    api.add_middleware(Requests, counts=api.state.requests)
    problems.install(api)
    openapi.install(api)
    for routes in (
        *(health, jobs, stats, leases, schedules, installation, operations, tokens),
        *(keys, notices, sessions, system),
    ):
        api.include_router(routes.router)
    api.include_router(health.metrics_router)
    dashboard.install(api)
    return api
