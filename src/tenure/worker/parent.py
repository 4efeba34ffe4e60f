"""The parent: starts children, ends those that keep a lease too long, settles what they leave.

It loads no user code, so nothing of the user's can keep it from its watch.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from tenure._services.base import log
from tenure._services.board import NEVER
from tenure.job import boottime
from tenure.worker.aftermath import Aftermath
from tenure.worker.changes import on_change
from tenure.worker.figures import Figures
from tenure.worker.listener import Answer, answering, listening
from tenure.worker.news import News
from tenure.worker.offspring import Offspring, Plan
from tenure.worker.speaking import speak
from tenure.worker.statefile import StateFile

_LOOK = 0.05
_SOON = 1.0
_LONGEST_PAUSE = 30.0
_SETTLE_WITHIN = 2.0
_FRESH = 10.0


class Parent:
    """A worker: its children, from the first to the last."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._aftermath = Aftermath(name=plan.name)
        self._state = StateFile(name=plan.name, wanted=plan.processes)
        self._children: set[Offspring] = set()
        self._scheduling: Offspring | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._crashes = 0
        self._to_come = 0
        self._reload_wanted = False
        self._reloading = False
        self._changes: asyncio.Task[None] | None = None
        self._told_to_stop = asyncio.Event()
        self._refusal: str | None = None
        self._over = asyncio.Event()
        self._began_at = self._looked_at = boottime()
        self._figures = Figures()

    @property
    def _stopping(self) -> bool:
        return self._told_to_stop.is_set()

    async def run(self) -> int:
        """Work until told to stop; answers with the exit code."""
        loop = asyncio.get_running_loop()
        for request in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(request, self._stop)
        watched = self._plan.watched
        # Where somebody sits before it, a SIGHUP says that the terminal is gone.
        loop.add_signal_handler(signal.SIGHUP, self._stop if watched else self._reload)
        for _ in range(self._plan.processes):
            self._do(self._live(self._child()))
        watch = asyncio.create_task(self._watch())
        over = asyncio.create_task(self._over.wait())
        if watched:
            self._changes = asyncio.create_task(on_change(watched, self._reload))
        await asyncio.wait({watch, over}, return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            # Unwatched children must not go on: they end with this process.
            await watch
        watch.cancel()
        if self._changes is not None:
            self._changes.cancel()
        await self._settled()
        await self._aftermath.close()
        self._state.remove()
        if self._refusal is not None:
            sys.stderr.write(f"{self._refusal}\n")
            return 1
        lived = boottime() - self._began_at
        log.info("worker %s has ended, after %.0f s", self._plan.name, lived)
        return 0

    async def _settled(self) -> None:
        """Let what dead children left be settled, as long as one can wait for that."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SETTLE_WITHIN)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, child: Offspring) -> None:
        """The life of one child, and what comes after it."""
        self._children.add(child)
        try:
            await child.start()
        except OSError as error:
            log.error("no child can be started: %s", error)
            self._forget(child)
            self._restart_after(_SOON)
            return
        code = await child.ended()
        self._forget(child)
        if database := child.database:
            self._aftermath.know(*database)
        entries = child.entries()
        self._figures.keep(child.counts(), how=child.killed or child.left or "crashed")
        child.close()
        self._succeed(child, code)
        if child.refusal is not None:
            return
        on_purpose = child.left is not None or child.killed == "grace"
        news = await self._aftermath.settle(child.worker, entries, on_purpose=on_purpose)
        if news and child.told.get("listens"):
            await self._pass_on(news)

    async def _pass_on(self, news: News) -> None:
        """Have a living child tell its listeners; leave it untold if none comes in time."""
        until = boottime() + _LONGEST_PAUSE
        while boottime() < until and not self._stopping:
            for child in self._children:
                if child.tell(news):
                    return
            await asyncio.sleep(_LOOK)
        log.warning("parent: %d ends of jobs are left untold to listeners", len(news))

    def _succeed(self, child: Offspring, code: int) -> None:
        """Start the next child in this one's place, or end with the last."""
        if child.on_trial and not self._stopping:
            # The old one, in whose place it would have come, goes on.
            return
        lived = boottime() - child.started_at
        if child.refusal is not None and self._number <= self._plan.processes:
            self._refusal = child.refusal
            self._drain_all()
        elif child.left is None and not child.draining:
            log.warning("a child ended by itself (%s) after %.1f s", _named(code), lived)
        # By itself only when its queues are empty and that is what it was for, or when an
        # operator asked this one to drain.
        finished = child.left in ("drained", "overran")
        if not self._stopping and not finished and not child.draining:
            self._crashes = self._crashes + 1 if lived < _SOON else 0
            pause = min(_LONGEST_PAUSE, 0.5 * 2**self._crashes) if self._crashes > 1 else 0.0
            self._restart_after(pause)
        else:
            self._end_with_the_last()

    def _restart_after(self, pause: float) -> None:
        self._to_come += 1
        self._do(self._restart(pause))

    async def _restart(self, pause: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._told_to_stop.wait()
        self._to_come -= 1
        if self._stopping:
            self._end_with_the_last()
        else:
            await self._live(self._child())

    def _end_with_the_last(self) -> None:
        if not self._children and not self._to_come:
            self._over.set()

    async def _watch(self) -> None:
        """See to it that no child runs a handler past its lease, or past its grace."""
        written_at = 0.0
        while True:
            now = self._looked_at = boottime()
            nearest = NEVER
            for child in list(self._children):
                nearest = min(nearest, self._look_at(child, now))
            if now - written_at >= 1:
                written_at = now
                children, draining = len(self._children), self._stopping
                self._state.write(now=now, children=children, draining=draining)
            await asyncio.sleep(max(min(nearest - boottime(), _LOOK), 0.001))

    def metrics(self) -> str:
        """The page for a scraper."""
        return self._figures.page(
            [child.counts() for child in self._children],
            wanted=self._plan.processes,
            draining=self._stopping,
        )

    def health(self) -> Answer:
        """Whether the watch over the children goes on; the database is not asked."""
        fresh = boottime() - self._looked_at < _FRESH
        told = {
            "status": "live" if fresh else "stuck",
            "state": "draining" if self._stopping else "active",
            "children": len(self._children),
            "wanted": self._plan.processes,
        }
        return Answer(200 if fresh else 503, "application/json", json.dumps(told) + "\n")

    def _look_at(self, child: Offspring, now: float) -> float:
        """End the child if it must; answers with the next instant at which it might have to be."""
        if child.killed:
            return NEVER
        earliest, stuck = child.look()
        if now >= earliest:
            log.error("a child holds a lease past its deadline; it is killed")
            child.killed = "lease"
            child.kill()
        elif now >= child.kill_at:
            log.warning("a child did not drain within the grace; it is killed")
            child.killed = "grace"
            child.kill()
        elif stuck and not child.draining:
            log.warning("a child has a handler that does not end; it is replaced")
            self._drain(child)
            if not self._stopping:
                self._do(self._live(self._child()))
        return min(earliest, child.kill_at)

    def _reload(self) -> None:
        """Replace every child: the new ones load the code as it is now."""
        self._reload_wanted = True
        if not self._reloading:
            self._reloading = True
            self._do(self._replace_all())

    async def _replace_all(self) -> None:
        """One replacement after the other: two at once would leave two successors behind."""
        while self._reload_wanted and not self._stopping:
            self._reload_wanted = False
            log.info("reloading")
            old = [child for child in self._children if not child.draining]
            if all(await asyncio.gather(*(self._replace(child) for child in old))):
                log.info("reloaded")
        self._reloading = False

    async def _replace(self, child: Offspring) -> bool:
        """Drain a child once its successor has loaded the app; keep it if that fails."""
        successor = self._child(in_place_of=child)
        successor.on_trial = True
        self._do(self._live(successor))
        if not await successor.ready():
            # On trial to its end: nobody takes its place.
            told = successor.refusal or "the new child ended at once"
            log.error("not reloaded; the old code goes on. %s", told)
            return False
        successor.on_trial = False
        if child in self._children:
            if self._scheduling is child:
                self._scheduling = successor
            self._drain(child)
        else:
            # It ended by itself meanwhile, and has a successor already.
            self._drain(successor)
        return True

    def _child(self, *, in_place_of: Offspring | None = None) -> Offspring:
        """One more child. One of them all has the scheduler; so has who is to take its place."""
        self._number += 1
        if in_place_of is not None:
            return Offspring(self._plan, self._number, schedules=in_place_of.schedules)
        child = Offspring(
            self._plan,
            self._number,
            schedules=self._plan.schedules and self._scheduling is None,
        )
        if child.schedules:
            self._scheduling = child
        return child

    def _forget(self, child: Offspring) -> None:
        """A child is gone."""
        self._children.discard(child)
        self._pass_on_schedules(child)

    def _drain(self, child: Offspring) -> None:
        """Tell a child to drain; it fires no schedules from then on."""
        child.drain(boottime() + self._plan.kill_after)
        self._pass_on_schedules(child)

    def _pass_on_schedules(self, child: Offspring) -> None:
        """If this was the one with the scheduler: another has it now, else the next to come."""
        if self._scheduling is child:
            others = (other for other in self._children if other.take_schedules())
            self._scheduling = None if self._stopping else next(others, None)

    def _drain_all(self) -> None:
        self._told_to_stop.set()
        for child in self._children:
            self._drain(child)
        if database := next((child.database for child in self._children if child.database), None):
            self._do(self._aftermath.expect(*database))
        self._end_with_the_last()

    def _stop(self) -> None:
        """First: drain. Again: kill, then release."""
        if not self._stopping:
            log.info("draining, for at most %g s; a second signal ends at once", self._plan.grace)
            self._drain_all()
            return
        for child in self._children:
            child.killed = "grace"
            child.kill()


def run(plan: Plan) -> int:
    """Be a worker until it is over; answers with the exit code."""
    speak(plan.log_level, plan.log_format)

    on = None
    if plan.metrics_port is not None:
        on = listening(plan.metrics_host, plan.metrics_port)

    async def main() -> int:
        parent = Parent(plan)
        async with answering(on, metrics=parent.metrics, health=parent.health):
            return await parent.run()

    return asyncio.run(main())


def _named(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
