"""The parent: starts children, kills those that hold a lease for too long, and settles their jobs.

It loads no user code, so user code can't block it.
"""

import asyncio
import json
import logging
import os
import signal
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from tenure import _log
from tenure._clock import boottime
from tenure._runtime.lease_board import NEVER
from tenure._services.base import log
from tenure.worker.child_process import ChildProcess, WorkerOptions
from tenure.worker.ipc import RecoveredJobs
from tenure.worker.log_format import configure_logging
from tenure.worker.observability import (
    HealthResponse,
    StateFile,
    WorkerHealth,
    WorkerMetrics,
    open_socket,
    serve_health,
)
from tenure.worker.processes import reap_orphans
from tenure.worker.recovery import KILLED, DeadChildRecovery, Death
from tenure.worker.reloader import watch_files
from tenure.worker.replacement import Succession

_MINUTE = 60.0
# Up to this many crashes per child and minute, a new child starts immediately.
_FREE = 5
_FIRST = 0.5
_LONGEST = 30.0


class Crashes:
    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._at: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._at)

    def pause(self, now: float) -> float:
        """Record a crash, and return how many seconds to wait before the next start."""
        self._at.append(now)
        while self._at[0] <= now - _MINUTE:
            self._at.popleft()
        surplus = len(self._at) // self._processes - _FREE
        return min(_LONGEST, _FIRST * 2.0 ** min(surplus - 1, 10)) if surplus > 0 else 0.0


_LOOK = 0.05
_SOON = 1.0
_LONGEST_PAUSE = 30.0
_SETTLE_WITHIN = 2.0
_FRESH = 10.0


class Parent:
    def __init__(self, plan: WorkerOptions) -> None:
        self._plan = plan
        self._recovery = DeadChildRecovery(name=plan.name)
        self._state = StateFile(name=plan.name, wanted=plan.processes)
        self.children: set[ChildProcess] = set()
        self._scheduling: ChildProcess | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._crashes = Crashes(plan.processes)
        self._health = WorkerHealth()
        self._to_come = 0
        self._succession = Succession(self, plan)
        self._changes: asyncio.Task[None] | None = None
        self.stop_requested: asyncio.Event = asyncio.Event()
        self._refusal: str | None = None
        self._over = asyncio.Event()
        self._began_at = self._looked_at = boottime()
        self._metrics = WorkerMetrics()

    @property
    def _stopping(self) -> bool:
        return self.stop_requested.is_set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for request in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(request, self._stop)
        watched = self._plan.watched
        # Under `tenure dev`, SIGHUP means that the terminal is gone.
        loop.add_signal_handler(signal.SIGHUP, self._stop if watched else self._succession.reload)
        for _ in range(self._plan.processes):
            self.do(self._live(self._child()))
        watch = asyncio.create_task(self._watch())
        over = asyncio.create_task(self._over.wait())
        if watched:
            self._changes = asyncio.create_task(watch_files(watched, self._succession.reload))
        await asyncio.wait({watch, over}, return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            # Children must not run unsupervised: they end with this process.
            await watch
        watch.cancel()
        if self._changes is not None:
            self._changes.cancel()
        await self._settled()
        await self._recovery.close()
        self._state.remove()
        if self._refusal is not None:
            _log.write(f"{self._refusal}\n")
            return 1
        lived = boottime() - self._began_at
        log.info("worker %s stopped after %.0f s", self._plan.name, lived)
        return 0

    async def _settled(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SETTLE_WITHIN)

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, child: ChildProcess) -> None:
        """Run one child until it ends, then settle its jobs and start its successor."""
        self.children.add(child)
        try:
            await child.start()
        except OSError as error:
            log.error("cannot start a child: %s", error)
            self._forget(child)
            self._restart_after(_SOON)
            return
        death = await child.ended()
        self._forget(child)
        database, entries = child.database, child.entries()
        self._metrics.keep(child.counts(), how=_how(child, death))
        child.close()
        self._succeed(child, death)
        if child.startup_error is not None:
            return
        if database is not None:
            await self._recovery.connect_to(*database)
        news = await self._recovery.settle(child.worker, entries, death=death)
        if news and child.messages.get("listens"):
            await self._pass_on(news)

    async def _pass_on(self, news: RecoveredJobs) -> None:
        """Forward events to a live child. Drop them if no child is ready in time."""
        until = boottime() + _LONGEST_PAUSE
        while boottime() < until and not self._stopping:
            for child in self.children:
                if child.send_recovered(news):
                    return
            await asyncio.sleep(_LOOK)
        log.warning("parent: %d job events not delivered to listeners", len(news))

    def _succeed(self, child: ChildProcess, death: Death) -> None:
        """Start a successor, or shut down with the last child."""
        if child.probation and not self._stopping:
            # The old child keeps running.
            return
        lived = boottime() - child.started_at
        if child.startup_error is not None and self._number <= self._plan.processes:
            self._refusal = child.startup_error
            self._drain_all()
        elif child.exit_reason is None and not child.draining:
            how = death.how
            self._health.last_end = f"child {child.number} ended ({how}) after {lived:.1f} s"
            if child.startup_error is not None:
                self._health.last_end = child.startup_error
                log.error("child %d cannot start\n%s", child.number, child.startup_error)
            elif child.killed is None:
                log.warning("child %d crashed (%s) after %.1f s", child.number, how, lived)
        elif child.was_signalled and not child.draining and not self._stopping:
            log.warning(
                "child %d exited after a signal from another process, replacing it", child.number
            )
        # A child exits on its own only with --drain, or if an operator drained the worker.
        finished = child.exit_reason in ("drained", "overran") and not child.was_signalled
        if not self._stopping and not finished and not child.draining:
            pause = self._crashes.pause(boottime())
            self._restart_after(pause)
            if pause:
                crashes = len(self._crashes)
                log.warning(
                    "%d children crashed within a minute, next start in %.1f s", crashes, pause
                )
        else:
            self._end_if_last()

    def _restart_after(self, pause: float) -> None:
        self._to_come += 1
        self.do(self._restart(pause))

    async def _restart(self, pause: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self.stop_requested.wait()
        self._to_come -= 1
        if self._stopping:
            self._end_if_last()
        else:
            await self._live(self._child())

    def _end_if_last(self) -> None:
        if not self.children and not self._to_come:
            self._over.set()

    async def _watch(self) -> None:
        """Kill children that run a handler past its lease or the grace period."""
        written_at = 0.0
        while True:
            now = self._looked_at = boottime()
            nearest = NEVER
            for child in list(self.children):
                nearest = min(nearest, self._look_at(child, now))
            if now - written_at >= 1:
                written_at = now
                self._reap()
                self._replace_limited()
                self._succession.recycle()
                children, draining = len(self.children), self._stopping
                self._health.update(self.children, now, draining=draining)
                self._state.write(
                    now=now, children=children, draining=draining, health=self._health
                )
            await asyncio.sleep(max(min(nearest - boottime(), _LOOK), 0.001))

    def _replace_limited(self) -> None:
        """Replace a child whose open file limit was lowered, so it can't connect or fork."""
        for child in [child for child in self.children if not child.draining]:
            if (files := child.lowered_files()) is not None:
                self._drain_and_replace(child)
                log.warning(
                    "child %d: a handler lowered the open file limit to %d, replacing the child",
                    child.number,
                    files,
                )

    def _reap(self) -> None:
        pids = {child.pid for child in self.children}
        # The pid of a child that is still starting isn't known yet.
        if os.getpid() == 1 and None not in pids:
            reap_orphans({pid for pid in pids if pid is not None})

    def metrics(self) -> str:
        return self._metrics.page(
            [child.counts() for child in self.children],
            wanted=self._plan.processes,
            draining=self._stopping,
        )

    def health(self) -> HealthResponse:
        fresh = boottime() - self._looked_at < _FRESH
        facts = {
            "state": "draining" if self._stopping else "active",
            "children": len(self.children),
            "wanted": self._plan.processes,
        }
        status, body = self._health.response(facts, is_watched=fresh)
        return HealthResponse(status, "application/json", json.dumps(body) + "\n")

    def _look_at(self, child: ChildProcess, now: float) -> float:
        """Kill or replace the child if necessary. Return when its next deadline is."""
        if child.killed:
            return NEVER
        look = child.board_summary()
        if reason := child.overdue(look, now):
            # Kill first: logging must not delay the kill.
            child.killed = reason
            child.kill()
            lived = now - child.started_at
            level = logging.WARNING if reason == "grace" else logging.ERROR
            log.log(level, "child %d killed after %.1f s: %s", child.number, lived, KILLED[reason])
            return NEVER
        if look.stuck and not child.draining:
            self._drain_and_replace(child)
            log.warning("child %d: a handler did not stop, replacing the child", child.number)
        elif child.drains_unrequested:
            self._drain_and_replace(child)
            log.warning(
                "child %d drains after a signal from another process, replacing it", child.number
            )
        return min(look.earliest, child.kill_at)

    def _drain_and_replace(self, child: ChildProcess) -> None:
        self.drain(child)
        if not self._stopping:
            self.do(self._live(self._child()))

    def start_in_place_of(self, child: ChildProcess) -> ChildProcess:
        successor = self._child(in_place_of=child)
        successor.probation = True
        self.do(self._live(successor))
        return successor

    def succeed_by(self, child: ChildProcess, successor: ChildProcess) -> None:
        if self._scheduling is child:
            self._scheduling = successor
        self.drain(child)

    def _child(self, *, in_place_of: ChildProcess | None = None) -> ChildProcess:
        """Create a child. Exactly one child, or its successor, runs the scheduler."""
        self._number += 1
        if in_place_of is not None:
            return ChildProcess(self._plan, self._number, schedules=in_place_of.schedules)
        child = ChildProcess(
            self._plan, self._number, schedules=self._plan.schedules and self._scheduling is None
        )
        if child.schedules:
            self._scheduling = child
        return child

    def _forget(self, child: ChildProcess) -> None:
        self.children.discard(child)
        self._pass_on_schedules(child)

    def drain(self, child: ChildProcess) -> None:
        """Tell a child to drain; it stops running schedules."""
        child.drain(boottime() + self._plan.kill_after)
        self._pass_on_schedules(child)

    def _pass_on_schedules(self, child: ChildProcess) -> None:
        """Move the scheduler to another child, or to the next one that starts."""
        if self._scheduling is child:
            others = (other for other in self.children if other.run_scheduler())
            self._scheduling = None if self._stopping else next(others, None)

    def _drain_all(self) -> None:
        self.stop_requested.set()
        for child in self.children:
            self.drain(child)
        if database := next((child.database for child in self.children if child.database), None):
            self.do(self._recovery.prepare(*database))
        self._end_if_last()

    def _stop(self) -> None:
        if not self._stopping:
            log.info("draining for up to %g s; a second signal stops at once", self._plan.grace)
            self._drain_all()
            return
        for child in self.children:
            child.killed = "grace"
            child.kill()


def run(plan: WorkerOptions) -> int:
    configure_logging(plan.log_level, plan.log_format)

    on = None
    if plan.metrics_port is not None:
        on = open_socket(plan.metrics_host, plan.metrics_port)

    async def main() -> int:
        parent = Parent(plan)
        async with serve_health(on, metrics=parent.metrics, health=parent.health):
            return await parent.run()

    return asyncio.run(main())


def _how(child: ChildProcess, death: Death) -> str:
    if child.killed is None and child.exit_reason is None:
        if child.startup_error is not None:
            return "refused"
        return "out_of_memory" if death.out_of_memory else "crashed"
    return child.killed or child.recycled or child.exit_reason or ""
