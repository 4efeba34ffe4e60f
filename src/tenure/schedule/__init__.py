"""The scheduler as a process of its own: it declares the app's schedules, fires what is due, and
runs no jobs."""

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure._services.base import log
from tenure._services.supervisor import Supervisor
from tenure._services.wakeups import Wakeups
from tenure.app import Tenure
from tenure.errors import StoreError
from tenure.sources import setting
from tenure.worker.scheduling import scheduler

if TYPE_CHECKING:
    from tenure._services.base import Service

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
        if await _before(told, _until_fit(app)):
            await _fire(app, name, told)
    finally:
        await app.aclose()


async def _before(told: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do this, unless told to stop before it is done; whether it was done."""
    doing, stop = asyncio.create_task(work), asyncio.create_task(told.wait())
    await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if doing.done():
        await doing
        return True
    doing.cancel()
    await asyncio.wait({doing}, timeout=_STOP_WITHIN)
    return False


async def _until_fit(app: Tenure) -> None:
    """Return once the schema is known to fit; wait while the database is away."""
    while True:
        try:
            await app.engine.arun(app.engine.check_schema())
        except StoreError as error:
            log.warning("waiting for the database: %s", error)
            await asyncio.sleep(app.defaults.poll.total_seconds())
        else:
            return


async def _fire(app: Tenure, name: str, told: asyncio.Event) -> None:
    engine, firing = app.engine, scheduler(app, name)
    services: list[Service] = [firing]
    if app.listen is not False:
        link = engine.link(f"tenure {name} wakeups")
        listen = partial(link.listen, engine.channel, anyway=app.listen is True)
        services.append(Wakeups(listen, firing.wake, close=link.close))
    if engine.bell is not None:
        services.append(Wakeups(engine.bell.listen, firing.wake))
    supervisor = Supervisor(services)
    supervisor.start()
    log.info("firing schedules, %d of them declared by %s", len(app.declared), app.program)
    await told.wait()
    log.info("stopping")
    for service in reversed(services):
        await supervisor.stop(service, within=_STOP_WITHIN)
