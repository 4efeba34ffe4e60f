"""The scheduler process: declares the app's schedules and runs due ones, but runs no jobs."""

import asyncio
import os
import signal
import socket
from typing import Any

from tenure._runtime.scheduler_thread import notice_service, scheduler
from tenure._runtime.startup import run_unless_stopped, wait_for_schema, wakeups
from tenure._services.base import Supervisor, log
from tenure._services.scheduler import Scheduler
from tenure._settings import resolve
from tenure.app import Tenure
from tenure.worker.observability import HealthResponse, WorkerMetrics, open_socket, serve_health

_STOP_WITHIN = 0.5


def main(
    app: Tenure,
    *,
    name: str | None = None,
    metrics_host: str | None = None,
    metrics_port: int | None = None,
) -> None:
    """Run this app's schedules until stopped; `name` labels its connections."""
    port = resolve("metrics_port", metrics_port)
    on = None if port is None else open_socket(resolve("metrics_host", metrics_host), port)
    asyncio.run(_run(app, resolve("name", name) or f"{socket.gethostname()}-{os.getpid()}", on))


async def _run(app: Tenure, name: str, on: socket.socket | None) -> None:
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for request in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(request, stop_requested.set)
    worker_metrics = WorkerMetrics()
    firing: list[Scheduler] = []

    def metrics() -> str:
        return worker_metrics.page(
            [_counts(service) for service in firing], wanted=1, draining=stop_requested.is_set()
        )

    try:
        async with serve_health(on, metrics=metrics, health=_health):
            if await run_unless_stopped(stop_requested, wait_for_schema(app)):
                firing.append(scheduler(app, name))
                await _fire(app, name, firing[0], stop_requested)
    finally:
        await app.aclose()


def _health() -> HealthResponse:
    return HealthResponse(200, "application/json", '{"status": "live"}\n')


def _counts(firing: Scheduler) -> dict[str, Any]:
    errors = {firing.name: firing.errors}
    return {"ticks": firing.ticks, "tick_jobs": firing.jobs, "errors": errors}


async def _fire(app: Tenure, name: str, firing: Scheduler, stop_requested: asyncio.Event) -> None:
    services = [firing, notice_service(app, name), *wakeups(app, name, firing.wake)]
    supervisor = Supervisor(services)
    supervisor.start()
    log.info("scheduler started: program=%s, schedules=%d", app.program, len(app.declared))
    await stop_requested.wait()
    log.info("scheduler stopping")
    for service in reversed(services):
        await supervisor.stop(service, within=_STOP_WITHIN)
