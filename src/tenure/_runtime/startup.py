"""Startup steps for every process: wait for the schema and listen for wakeups."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from tenure._runtime.host import WorkerHost
from tenure._services.base import Service, log
from tenure._services.wakeups import Wakeups
from tenure.errors import StoreError

_STOP_WITHIN = 0.5


def package_version() -> str:
    try:
        return version("tenure")
    except PackageNotFoundError:
        return "unknown"


def redact_url(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def wait_for_schema(app: WorkerHost) -> None:
    """Wait for the database, then check its schema. Raise SchemaError if it doesn't match."""
    while True:
        try:
            await app.engine.arun(app.engine.store.schema.check())
        except StoreError as error:
            log.warning("waiting for the database: %s", error)
            await asyncio.sleep(app.defaults.poll.total_seconds())
        else:
            return


async def run_unless_stopped(stopped: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run until done or stopped; return whether it finished."""
    doing, stop = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if doing.done():
        await doing
        return True
    doing.cancel()
    await asyncio.wait({doing}, timeout=_STOP_WITHIN)
    return False


def wakeups(app: WorkerHost, name: str, on_wakeup: Callable[[str], None]) -> Sequence[Service]:
    """Create the services that listen for wakeups, using PostgreSQL, Redis, both or neither."""
    engine = app.engine
    services: list[Service] = []
    if app.listen is not False:
        link = engine.service_connection(f"tenure {name} wakeups")
        listen = partial(link.listen, engine.channel, anyway=app.listen is True)
        services.append(Wakeups(listen, on_wakeup, close=link.close))
    if engine.notifier is not None:
        services.append(Wakeups(engine.notifier.listen, on_wakeup))
    return services
