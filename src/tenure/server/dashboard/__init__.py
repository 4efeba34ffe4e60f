"""The dashboard: pages for the person on call, beside the API.

A page is a spelling of routes of the API: it calls their functions, so that who may see or do
what, and what is hidden, is decided in one place. Every form works without scripts.
"""

from fastapi import FastAPI

from tenure.server.dashboard import live, rendering
from tenure.server.dashboard.views import (
    audit,
    failed,
    job,
    jobs,
    operations,
    overview,
    queues,
    schedules,
    sign_in,
    system,
    workers,
)

__all__ = ["install"]


def install(api: FastAPI) -> None:
    """Add the pages to the program."""
    for room in (
        *(rendering, sign_in, live, overview, queues, jobs, job, failed, operations),
        *(workers, schedules, audit, system),
    ):
        api.include_router(room.router, include_in_schema=False)
    rendering.install(api)
