"""The scheduler as a process of its own: it declares the app's schedules, fires what is due, and
runs no jobs."""

import asyncio
import os
import signal
import socket
from typing import Any

from tenure._services.base import log
from tenure._services.scheduler import Scheduler
from tenure._services.supervisor import Supervisor
from tenure.app import Tenure
from tenure.sources import setting
from tenure.worker.beginning import before, until_fit, wakeups
from tenure.worker.figures import Figures
from tenure.worker.listener import Answer, answering, listening
from tenure.worker.scheduling import scheduler

_STOP_WITHIN = 0.5


def main(
    app: Tenure,
    *,
    name: str | None = None,
    metrics_host: str | None = None,
    metrics_port: int | None = None,
) -> None:
    """Fire schedules for this app until told to stop. The name is for its connections; what is
    not given is found in the environment or in tenure.toml."""
    port = setting("metrics_port", metrics_port)
    on = None if port is None else listening(setting("metrics_host", metrics_host), port)
    asyncio.run(_run(app, setting("name", name) or f"{socket.gethostname()}-{os.getpid()}", on))


async def _run(app: Tenure, name: str, on: socket.socket | None) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for request in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(request, told.set)
    figures = Figures()
    firing: list[Scheduler] = []

    def metrics() -> str:
        return figures.page([_counts(one) for one in firing], wanted=1, draining=told.is_set())

    try:
        async with answering(on, metrics=metrics, health=_health):
            if await before(told, until_fit(app)):
                firing.append(scheduler(app, name))
                await _fire(app, name, firing[0], told)
    finally:
        await app.aclose()


def _health() -> Answer:
    """It answers, so that it lives."""
    return Answer(200, "application/json", '{"status": "live"}\n')


def _counts(firing: Scheduler) -> dict[str, Any]:
    errors = {firing.name: firing.errors}
    return {"ticks": firing.ticks, "tick_jobs": firing.jobs, "errors": errors}


async def _fire(app: Tenure, name: str, firing: Scheduler, told: asyncio.Event) -> None:
    services = [firing, *wakeups(app, name, firing.wake)]
    supervisor = Supervisor(services)
    supervisor.start()
    log.info("firing schedules, %d of them declared by %s", len(app.declared), app.program)
    await told.wait()
    log.info("stopping")
    for service in reversed(services):
        await supervisor.stop(service, within=_STOP_WITHIN)
