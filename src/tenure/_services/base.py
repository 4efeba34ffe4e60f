"""A service: its loop, its backoff, and the supervisor that starts and stops it."""

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
    """The fields of a record in the log that is about this job, for its `extra`."""
    return {
        "job": job.id,
        "attempt": job.attempt,
        "token": job.token,
        "queue": job.queue,
        "task": job.task,
    }


class Service:
    """One job of the worker. A subclass writes `tick`, which answers how much it did.

    After a pass that did something the next one follows at once; after one that did nothing
    the service rests for `pause`, or until nudged. An error ends no service: what cannot be
    done now is tried again after `retry`, then ever more slowly, at the slowest every `longest`.
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
        """One bounded pass."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of what the service holds."""

    def run_soon(self) -> None:
        """Let the next pass begin at once. From the service's own event loop only."""
        self._nudged.set()

    def stop(self) -> None:
        """Let the loop end after the pass that it is in."""
        self._stopping = True
        self._nudged.set()

    async def run(self) -> None:
        """Pass after pass until stopped."""
        try:
            while not self._stopping:
                done = await self._attempt()
                if not done and not self._stopping:
                    await self.sleep(self._next_delay())
        finally:
            await self.close()

    async def _attempt(self) -> int:
        # Cleared before the pass, so that a nudge during it is not forgotten.
        self._nudged.clear()
        try:
            done = await self.tick()
        except StoreError as error:
            self._failures += 1
            self.errors += 1
            # Said once: an outage of an hour is one line in the log, not a thousand.
            level = logging.WARNING if self._failures == 1 else logging.DEBUG
            log.log(level, "%s: %s; it tries again", self.name, error)
            return 0
        except Exception:
            self._failures += 1
            log.exception("%s: a pass failed; it goes on", self.name)
            return 0
        if self._failures:
            log.info("%s: it works again, after %d tries", self.name, self._failures + 1)
        self._failures = 0
        return done

    def _next_delay(self) -> float:
        seconds = self.pause.total_seconds()
        if self._failures:
            seconds = min(self._longest, self._retry * 2 ** min(self._failures - 1, 10))
        return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until nudged."""
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
