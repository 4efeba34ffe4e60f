"""The worker: a parent without user code, and the children that run it."""

import os
import socket
from collections.abc import Sequence

from tenure import sources
from tenure.sources import setting
from tenure.worker.changes import Changes
from tenure.worker.offspring import Plan
from tenure.worker.parent import run


def main(
    target: str | None = None,
    *,
    queues: Sequence[str] | None = None,
    concurrency: int | None = None,
    processes: int | None = None,
    drain: bool = False,
    grace: float | None = None,
    name: str | None = None,
    schedules: bool | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
    metrics_host: str | None = None,
    metrics_port: int | None = None,
    load_timeout: float | None = None,
    max_jobs: int | None = None,
    max_memory: str | None = None,
    watched: Changes | None = None,
) -> int:
    """Work for the app that `module:attribute` names, and fire its schedules, until told to stop
    or, with `drain`, until nothing is due; answers with the exit code.

    What is not given is found in the environment or in tenure.toml. Under `watched`, a change of
    a Python file reloads the code.
    """
    queues = setting("queues", queues or None)
    plan = Plan(
        target=sources.target(target),
        queues=list(queues) if queues else None,
        slots=setting("concurrency", concurrency),
        processes=setting("processes", processes),
        until_empty=drain,
        # One that ends when its queues are empty adds nothing to them.
        schedules=setting("schedules", schedules) and not drain,
        grace=setting("grace", grace),
        name=setting("name", name) or f"{socket.gethostname()}-{os.getpid()}",
        log_level=setting("log_level", log_level),
        log_format=setting("log_format", log_format),
        metrics_host=setting("metrics_host", metrics_host),
        metrics_port=setting("metrics_port", metrics_port),
        watched=watched,
        load_timeout=setting("load_timeout", load_timeout),
        max_jobs=setting("max_jobs", max_jobs),
        max_memory=sources.size("max_memory", setting("max_memory", max_memory)),
    )
    return run(plan)
