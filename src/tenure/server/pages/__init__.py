"""The dashboard: pages for the person on call, beside the API.

A page is a spelling of routes of the API: it calls their functions, so that who may see or do
what, and what is hidden, is decided in one place. Every form works without scripts.
"""

from fastapi import FastAPI

from tenure.server.pages import assets, problems, signing, streaming
from tenure.server.pages.charting import shared as charts
from tenure.server.pages.views import (
    audit,
    failed,
    job,
    jobs,
    operations,
    overview,
    queues,
    schedules,
    starting,
    system,
    workers,
)

__all__ = ["charts", "install"]


def install(api: FastAPI) -> None:
    """Add the pages to the program."""
    for room in (
        *(assets, signing, streaming, overview, queues, jobs, job, failed),
        # Before the one that takes any id.
        *(starting, operations),
        *(workers, schedules, audit, system),
    ):
        api.include_router(room.router, include_in_schema=False)
    problems.install(api)
