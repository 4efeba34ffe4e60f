"""Replace working children: all of them on reload, or one at a time when recycling.

The new child loads the app first, and then the old one drains. No job is charged an attempt.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from tenure._services.base import log
from tenure.worker.child_process import ChildProcess, WorkerOptions
from tenure.worker.recovery import KILLED

# Pause after a successor fails to load the app.
_AGAIN_AFTER = 60.0


class Crew(Protocol):
    children: set[ChildProcess]
    stop_requested: asyncio.Event

    def start_in_place_of(self, child: ChildProcess) -> ChildProcess:
        """Start a child on trial."""

    def succeed_by(self, child: ChildProcess, successor: ChildProcess) -> None:
        """Hand over the scheduler and drain the child."""

    def drain(self, child: ChildProcess) -> None:
        """Tell a child to drain."""

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this as a task."""


class Succession:
    def __init__(self, crew: Crew, plan: WorkerOptions) -> None:
        self._crew = crew
        self._plan = plan
        self._wanted = False
        self._reloading = False
        self._recycling = False

    @property
    def _stopping(self) -> bool:
        return self._crew.stop_requested.is_set()

    def reload(self) -> None:
        # Kill successors from an earlier reload that are still loading.
        self._wanted = True
        for child in self._crew.children:
            if child.probation and child.database is None:
                child.killed = "reload"
                child.kill()
        if not self._reloading:
            self._reloading = True
            self._crew.do(self._replace_all())

    async def _replace_all(self) -> None:
        """Run one reload at a time: two would leave two successors."""
        try:
            while self._wanted and not self._stopping:
                self._wanted = False
                log.info("reloading")
                children = self._crew.children
                old = [child for child in children if not (child.draining or child.probation)]
                otherwise = "reload failed, old code still running: %s"
                if all(await asyncio.gather(*(self._replace(child, otherwise) for child in old))):
                    log.info("reloaded")
        finally:
            self._reloading = False

    async def _replace(self, child: ChildProcess, otherwise: str) -> bool:
        """Drain a child once its successor has loaded the app. If loading fails, keep it."""
        successor = self._crew.start_in_place_of(child)
        if not await successor.ready():
            # The successor stays on trial, so the parent doesn't replace it.
            reason = successor.startup_error or "the new child exited at once"
            if successor.killed is not None:
                reason = f"the new child was killed: {KILLED[successor.killed]}"
            log.error(otherwise, reason)
            return False
        successor.probation = False
        if child in self._crew.children and not child.draining:
            self._crew.succeed_by(child, successor)
        else:
            # The child is ending and already has another successor.
            self._crew.drain(successor)
        return True

    def recycle(self) -> None:
        """Replace one child that hit its job or memory limit, unless a replacement is under way."""
        if self._recycling or self._reloading or self._stopping:
            return
        for child in self._crew.children:
            if child.draining or child.probation or child.database is None:
                continue
            if reason := child.spent():
                self._recycling = True
                self._crew.do(self._recycle(child, *reason))
                return

    async def _recycle(self, child: ChildProcess, how: str, reason: str) -> None:
        try:
            log.info("child %d %s, replacing it", child.number, reason)
            child.recycled = how
            if await self._replace(child, "replacement failed, old child still running: %s"):
                # The parent kills it when the grace period ends.
                await child.gone.wait()
            else:
                child.recycled = None
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_AFTER):
                        await self._crew.stop_requested.wait()
        finally:
            self._recycling = False
