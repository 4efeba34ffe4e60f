"""The worker: a parent without user code, and the children that run your code."""

import os
import socket
from collections.abc import Sequence

from tenure import _settings
from tenure._rules.leasing import read_claim_lease
from tenure._settings import resolve
from tenure.config import DEFAULTS
from tenure.worker.child_process import WorkerOptions
from tenure.worker.parent import run
from tenure.worker.reloader import FileWatcher


def main(
    target: str | None = None,
    *,
    queues: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    concurrency: int | None = None,
    processes: int | None = None,
    drain: bool = False,
    lease: float | None = None,
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
    watched: FileWatcher | None = None,
) -> int:
    """Run the jobs and schedules of the app `module:attribute` until stopped.

    With `drain`, stop once no jobs are due. Options that aren't given come from the environment or
    tenure.toml. With `watched`, the worker reloads when a Python file changes. Returns the exit
    code.
    """
    queues = resolve("queues", queues or None)
    claim = read_claim_lease(resolve("lease", lease), defaults=DEFAULTS)
    plan = WorkerOptions(
        target=_settings.target(target),
        queues=list(queues) if queues else None,
        kinds=list(resolve("kinds", kinds or None) or ()),
        slots=resolve("concurrency", concurrency),
        processes=resolve("processes", processes),
        until_empty=drain,
        # A worker that stops once its queues are empty must not add jobs to them.
        schedules=resolve("schedules", schedules) and not drain,
        lease=None if claim is None else claim.total_seconds(),
        grace=resolve("grace", grace),
        name=resolve("name", name) or f"{socket.gethostname()}-{os.getpid()}",
        log_level=resolve("log_level", log_level),
        log_format=resolve("log_format", log_format),
        metrics_host=resolve("metrics_host", metrics_host),
        metrics_port=resolve("metrics_port", metrics_port),
        watched=watched,
        load_timeout=resolve("load_timeout", load_timeout),
        max_jobs=resolve("max_jobs", max_jobs),
        max_memory=_settings.size("max_memory", resolve("max_memory", max_memory)),
    )
    return run(plan)
