"""The dashboard: pages for the person on call.

Pages call the API's route functions, so access control and redaction live in one place. Every form
works without JavaScript.
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
    sessions,
    sign_in,
    system,
    workers,
)

__all__ = ["install"]


def install(api: FastAPI) -> None:
    """Add the pages to the app."""
    for view in (
        *(rendering, sign_in, live, overview, queues, jobs, job, failed, operations),
        *(workers, schedules, audit, system, sessions),
    ):
        api.include_router(view.router, include_in_schema=False)
    rendering.install(api)
