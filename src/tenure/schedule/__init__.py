"""The scheduler as a process of its own: it declares the app's schedules, fires what is due, and
runs no jobs."""

import asyncio
import os
import signal
import socket

from tenure._services.base import log
from tenure._services.supervisor import Supervisor
from tenure.app import Tenure
from tenure.sources import setting
from tenure.worker.beginning import before, until_fit, wakeups
from tenure.worker.scheduling import scheduler

_STOP_WITHIN = 0.5


def main(app: Tenure, *, name: str | None = None) -> None:
    """Fire schedules for this app until told to stop. The name is for its connections; what is
    not given is found in the environment or in tenure.toml."""
    asyncio.run(_run(app, setting("name", name) or f"{socket.gethostname()}-{os.getpid()}"))


async def _run(app: Tenure, name: str) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for request in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(request, told.set)
    try:
        if await before(told, until_fit(app)):
            await _fire(app, name, told)
    finally:
        await app.aclose()


async def _fire(app: Tenure, name: str, told: asyncio.Event) -> None:
    firing = scheduler(app, name)
    services = [firing, *wakeups(app, name, firing.wake)]
    supervisor = Supervisor(services)
    supervisor.start()
    log.info("firing schedules, %d of them declared by %s", len(app.declared), app.program)
    await told.wait()
    log.info("stopping")
    for service in reversed(services):
        await supervisor.stop(service, within=_STOP_WITHIN)
