"""Replacing children that work: all of them at a reload, one at a time when one has done or has
grown enough. The successor loads the app first; then the old one drains, and nothing is charged."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from tenure._services.base import log
from tenure.worker.child_process import ChildProcess, WorkerOptions
from tenure.worker.recovery import KILLED

# After a successor that could not load the app.
_AGAIN_AFTER = 60.0


class Crew(Protocol):
    """What it needs of the parent."""

    children: set[ChildProcess]
    told_to_stop: asyncio.Event

    def start_in_place_of(self, child: ChildProcess) -> ChildProcess:
        """Start one that is on trial."""

    def succeed_by(self, child: ChildProcess, successor: ChildProcess) -> None:
        """Hand over what only one has, and drain the child."""

    def drain(self, child: ChildProcess) -> None:
        """Tell a child to drain."""

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Have this done in a task."""


class Succession:
    """The replacements of one worker: one reload at a time, and one child at a time otherwise."""

    def __init__(self, crew: Crew, plan: WorkerOptions) -> None:
        self._crew = crew
        self._plan = plan
        self._wanted = False
        self._reloading = False
        self._recycling = False

    @property
    def _stopping(self) -> bool:
        return self._crew.told_to_stop.is_set()

    def reload(self) -> None:
        """Replace every child: the new ones load the code as it is now. Those of an earlier reload
        that have not loaded it yet are given up."""
        self._wanted = True
        for child in self._crew.children:
            if child.probation and child.database is None:
                child.killed = "reload"
                child.kill()
        if not self._reloading:
            self._reloading = True
            self._crew.do(self._replace_all())

    async def _replace_all(self) -> None:
        """One replacement after the other: two at once would leave two successors behind."""
        try:
            while self._wanted and not self._stopping:
                self._wanted = False
                log.info("reloading")
                children = self._crew.children
                old = [child for child in children if not (child.draining or child.probation)]
                otherwise = "not reloaded; the old code goes on. %s"
                if all(await asyncio.gather(*(self._replace(child, otherwise) for child in old))):
                    log.info("reloaded")
        finally:
            self._reloading = False

    async def _replace(self, child: ChildProcess, otherwise: str) -> bool:
        """Drain a child once its successor has loaded the app; keep it if that fails."""
        successor = self._crew.start_in_place_of(child)
        if not await successor.ready():
            # On trial to its end: nobody takes its place.
            reason = successor.startup_error or "the new child ended at once"
            if successor.killed is not None:
                reason = f"the new child was killed: {KILLED[successor.killed]}"
            log.error(otherwise, reason)
            return False
        successor.probation = False
        if child in self._crew.children and not child.draining:
            self._crew.succeed_by(child, successor)
        else:
            # It has ended meanwhile, or is about to, and has a successor already.
            self._crew.drain(successor)
        return True

    def recycle(self) -> None:
        """Replace one child that has run enough jobs or takes too much memory, if there is one and
        none is being replaced."""
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
            log.info("child %d %s; replacing it", child.number, reason)
            child.recycled = how
            if await self._replace(child, "not replaced; the old child goes on. %s"):
                # It is killed after the grace at the latest.
                await child.gone.wait()
            else:
                child.recycled = None
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_AFTER):
                        await self._crew.told_to_stop.wait()
        finally:
            self._recycling = False
