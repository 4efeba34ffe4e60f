"""Starts services in order and stops them in reverse; that order is the shutdown contract."""

import asyncio
from collections.abc import Sequence

from tenure._services.base import Service, log

_WITHIN = 5.0


class Supervisor:
    """The services of one event loop."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._tasks: dict[Service, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Start all services, in order."""
        for service in self._services:
            self._tasks[service] = asyncio.create_task(service.run(), name=f"tenure {service.name}")

    async def stop_all(self) -> None:
        """Stop the services one by one, the last first."""
        for service in reversed(self._services):
            await self.stop(service)

    async def stop(self, service: Service, *, within: float = _WITHIN) -> None:
        """Stop one service, if it runs; one that does not end is cancelled."""
        task = self._tasks.pop(service, None)
        if task is None:
            return
        service.stop()
        done, _ = await asyncio.wait({task}, timeout=within)
        if not done:
            log.warning("%s: did not stop within %g s", service.name, within)
            task.cancel()
            await asyncio.wait({task}, timeout=1)
