"""A service with its loop and backoff, and the supervisor that starts and stops services."""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import timedelta

from tenure._log import Log
from tenure._model.job import JobRow
from tenure.errors import StoreError

log = Log("tenure")
_SHORTEST_BACKOFF = timedelta(milliseconds=10)
_LONGEST_BACKOFF = timedelta(seconds=5)
_JITTER = 0.2


def log_fields(job: JobRow) -> dict[str, str | int]:
    return {
        "job": job.id,
        "attempt": job.attempt,
        "token": job.token,
        "queue": job.queue,
        "task": job.task,
    }


class Service:
    """A recurring task in a worker.

    Subclasses implement `tick`, which returns how much work it did.

    If a tick did any work, the next one starts immediately. After an idle tick, the service waits
    for `pause`, or until `run_soon()` is called. An error doesn't end the service. It retries after
    `retry`, with backoff up to `longest`.
    """

    name = "service"

    def __init__(
        self,
        pause: timedelta,
        *,
        retry: timedelta | None = None,
        longest: timedelta = _LONGEST_BACKOFF,
    ) -> None:
        self.pause = pause
        self._retry = max(pause if retry is None else retry, _SHORTEST_BACKOFF).total_seconds()
        self._longest = longest.total_seconds()
        self._nudged = asyncio.Event()
        self._stopping = False
        self._failures = 0
        self.errors: int = 0

    async def tick(self) -> int:
        """Do one bounded pass, and return how much work was done."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release resources."""

    def run_soon(self) -> None:
        """Start the next tick immediately. Call this only from the service's own event loop."""
        self._nudged.set()

    def stop(self) -> None:
        self._stopping = True
        self._nudged.set()

    async def run(self) -> None:
        try:
            while not self._stopping:
                done = await self._attempt()
                if not done and not self._stopping:
                    await self.sleep(self._next_delay())
        finally:
            await self.close()

    async def _attempt(self) -> int:
        # Cleared before the tick, so a request made during it counts.
        self._nudged.clear()
        try:
            done = await self.tick()
        except StoreError as error:
            self._failures += 1
            self.errors += 1
            # Logged once: an hour-long outage is one line, not a thousand.
            level = logging.WARNING if self._failures == 1 else logging.DEBUG
            log.log(level, "%s: %s; trying again", self.name, error)
            return 0
        except Exception:
            self._failures += 1
            log.exception("%s: unexpected error, trying again", self.name)
            return 0
        if self._failures:
            log.info("%s: recovered after %d attempts", self.name, self._failures + 1)
        self._failures = 0
        return done

    def _next_delay(self) -> float:
        seconds = self.pause.total_seconds()
        if self._failures:
            seconds = min(self._longest, self._retry * 2 ** min(self._failures - 1, 10))
        return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load

    async def sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._nudged.wait()
        except TimeoutError:
            pass


_WITHIN = 5.0


class Supervisor:
    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._tasks: dict[Service, asyncio.Task[None]] = {}

    def start(self) -> None:
        for service in self._services:
            self._tasks[service] = asyncio.create_task(service.run(), name=f"tenure {service.name}")

    async def stop_all(self) -> None:
        for service in reversed(self._services):
            await self.stop(service)

    async def stop(self, service: Service, *, within: float = _WITHIN) -> None:
        """Stop one service; cancel it if it doesn't end in time."""
        task = self._tasks.pop(service, None)
        if task is None:
            return
        service.stop()
        done, _ = await asyncio.wait({task}, timeout=within)
        if not done:
            log.warning("%s: did not stop within %g s", service.name, within)
            task.cancel()
            await asyncio.wait({task}, timeout=1)
