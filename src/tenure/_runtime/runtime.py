"""The services of one process that runs work, put together. Under a parent or by itself."""

import asyncio
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure._clock import boottime
from tenure._model.event import WorkerEventName
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker, WorkerState
from tenure._runtime.claimer import BacklogClaimer, Claimer
from tenure._runtime.counters import CountersWriter, SharedCounters, WorkerCounters, fan_out
from tenure._runtime.dispatcher import Dispatcher, Executors, WorkerSettings
from tenure._runtime.events import EventEmitter, completed, settled
from tenure._runtime.heartbeat import Heartbeat
from tenure._runtime.held_leases import HeldLease, HeldLeases, StopReason
from tenure._runtime.host import WorkerHost
from tenure._runtime.in_processes import ProcessExecutor
from tenure._runtime.lease_board import ACTIVE_PHASES, LeaseBoard
from tenure._runtime.on_loop import LoopExecutor
from tenure._runtime.on_threads import ThreadExecutor
from tenure._runtime.renewer import Renewer, deadline
from tenure._runtime.scheduler_thread import SchedulerThread
from tenure._runtime.settler import Settler
from tenure._runtime.startup import package_version, wakeups
from tenure._runtime.suspects import Confirmer
from tenure._runtime.watchdog import Watchdog
from tenure._services.base import Service, Supervisor, log
from tenure._services.operations import OperationRunner
from tenure._services.pruner import Pruner
from tenure._services.rescuer import Rescuer
from tenure._services.rollup import RollupService
from tenure._services.thread import ServiceThread, ServiceThreadConnection

_LOOK = 0.01
# The first may have begun before the last settle was committed; the second has not.
_EMPTY_CLAIMS = 2
_CLAIM_WITHIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How one process that runs work is to be."""

    worker: WorkerId
    name: str
    queues: Sequence[str]
    slots: int
    board: LeaseBoard | None = None
    sheet: SharedCounters | None = None
    handler: Sequence[str] | None = None
    schedules: bool = False
    tells: bool = False


class WorkerRuntime:
    """One process' services: handlers on this loop, what must survive them on the keeper's."""

    def __init__(
        self,
        app: WorkerHost,
        shape: RuntimeOptions,
        *,
        on_unstoppable: Callable[[HeldLease, StopReason], None],
        on_drain: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._shape = shape
        self._on_doomed = on_unstoppable
        self._on_drain = on_drain or self.stop_taking_work
        self._defaults = app.defaults
        self._loop = asyncio.get_running_loop()
        self._holdings = HeldLeases(shape.board)
        self._notes = WorkerSettings(backoff=app.defaults.backoff)
        engine, store = app.engine, app.engine.store
        engine.reserve_connections(shape.slots)
        name = f"tenure {shape.name}"
        self._settler = Settler(store, engine.service_connection(f"{name} settler"), self._holdings)
        self._keeper = ServiceThread(self._build_services)
        soon = self._defaults.stop_within / 2
        confirmer = Confirmer(
            store, self._service_thread_connection(f"{name} confirmer", deadline=soon)
        )
        process = None
        if shape.handler is not None:
            process = ProcessExecutor(shape.handler, keep=shape.slots, confirm=confirmer.confirm)
        self._process = process
        self._ways = Executors(
            loop=LoopExecutor(engine, app.hooks),
            thread=ThreadExecutor(engine, app.hooks, slots=shape.slots),
            process=process,
        )
        self._dispatcher = Dispatcher(
            slots=shape.slots,
            tasks=app.tasks,
            holdings=self._holdings,
            settler=self._settler,
            ways=self._ways,
            notes=self._notes,
            defaults=self._defaults,
            confirmer=confirmer,
            loop=self._loop,
        )
        self._claimer = Claimer(
            store,
            self._service_thread_connection(f"{name} claimer"),
            queues=shape.queues,
            worker=shape.worker,
            dispatcher=self._dispatcher,
            holdings=self._holdings,
            notes=self._notes,
            defaults=self._defaults,
            has_processes=process is not None,
        )
        self._seconder = BacklogClaimer(
            self._claimer,
            self._service_thread_connection(f"{name} claimer 2"),
            defaults=self._defaults,
        )
        self._dispatcher.on_free = self._claimer.slot_freed
        self.announcer: EventEmitter = EventEmitter(app.hooks.listeners, worker=shape.name)
        self._dispatcher.on_started = self.announcer.started
        self._dispatcher.on_completed = self.announcer.completed
        self._settler.on_settled = self.announcer.settled
        self._claimer.on_rescued = self.announcer.rescued
        self._tally = WorkerCounters()
        if shape.sheet is not None:
            self._subscribe_counters()
        if shape.tells:
            self._dispatcher.on_completed = fan_out(completed, self._dispatcher.on_completed)
            self._settler.on_settled = fan_out(settled, self._settler.on_settled)
        self._scheduling: SchedulerThread | None = None
        hearing = wakeups(app, shape.name, self._heard)
        pruner = Pruner(store, engine.service_connection(f"{name} pruner"))
        folder = RollupService(store, engine.service_connection(f"{name} folder"))
        claiming = [confirmer, self._claimer, self._seconder]
        services = [self._settler, *claiming, *hearing, pruner, folder]
        self._supervisor = Supervisor(services)
        self._services: list[Service] = list(services)
        self._renewer: Renewer | None = None
        self._herald: Heartbeat | None = None
        self._retired = False
        self._thread = threading.get_ident()

    def _service_thread_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> ServiceThreadConnection:
        return ServiceThreadConnection(
            self._keeper, lambda: self._app.engine.service_connection(name, deadline=deadline)
        )

    def _subscribe_counters(self) -> None:
        """Have what is announced counted too."""
        tally, announcer = self._tally, self.announcer
        self._dispatcher.on_started = fan_out(tally.start, announcer.started)
        self._dispatcher.on_completed = fan_out(tally.complete, announcer.completed)
        self._settler.on_settled = fan_out(tally.settle, announcer.settled)
        self._claimer.on_rescued = fan_out(tally.rescue, announcer.rescued)

    def metrics_snapshot(self) -> dict[str, Any]:
        """What this process has counted, and how it stands; from any of its threads."""
        ticks, jobs, errors = self._scheduling.fired if self._scheduling else (0, 0, 0)
        failed = Counter({"scheduler": errors})
        for service in list(self._services):
            failed[service.name] += service.errors
        return {
            "slots": self._shape.slots,
            "running": self._holdings.running,
            "leases": len(self._holdings),
            "beat_at": self._herald.beat_at if self._herald else 0.0,
            "claims": self._claimer.claims,
            "claimed": self._claimer.claimed,
            "renewed": self._renewer.renewed if self._renewer else 0,
            "late": self._renewer.late if self._renewer else 0,
            "ticks": ticks,
            "tick_jobs": jobs,
            "errors": dict(failed),
            "processes": dict(self._process.ended) if self._process else {},
            **self._tally.counts(),
        }

    def _build_services(self) -> Sequence[Service]:
        """The services of the keeper's thread; made there, because a link belongs to its loop."""
        engine, store = self._app.engine, self._app.engine.store
        name = f"tenure {self._shape.name}"
        renewing = engine.service_connection(
            f"{name} renewer", deadline=deadline(self._defaults.lease)
        )
        beating = engine.service_connection(f"{name} presence")
        watcher = Watchdog(
            self._holdings,
            loop=self._loop,
            thread=self._thread,
            release=self._dispatcher.release,
            retry_after=self._dispatcher.retry_after,
            on_unstoppable=self._on_doomed,
            defaults=self._defaults,
            board=self._shape.board,
        )
        self._herald = Heartbeat(
            store,
            beating,
            me=self._me(),
            holdings=self._holdings,
            watcher=watcher,
            notes=self._notes,
            on_drain=self._drain_from_service_thread,
            defaults=self._defaults,
        )
        rescuer = Rescuer(store, beating, defaults=self._defaults, holdings=self._holdings)
        rescuer.on_rescued = fan_out(self._tally.rescue, self.announcer.rescued)
        self._claimer.on_empty = lambda: self._keeper.call(rescuer.run_soon)
        renewer = self._renewer = Renewer(store, renewing, self._holdings, defaults=self._defaults)
        advancer = OperationRunner(
            store, beating, engine.service_connection(f"{name} advancer"), defaults=self._defaults
        )
        kept: list[Service] = [renewer, watcher, self._herald, rescuer, advancer]
        self._services += kept
        if self._shape.sheet is not None:
            kept.append(CountersWriter(self._shape.sheet, self.metrics_snapshot))
        return kept

    def _heard(self, word: str) -> None:
        self._claimer.wake(word)
        if self._scheduling is not None:
            self._scheduling.wake(word)

    def _drain_from_service_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._on_drain)

    def _me(self) -> NewWorker:
        return NewWorker(
            self._shape.worker,
            self._shape.name,
            socket.gethostname(),
            os.getpid(),
            package_version(),
            list(self._shape.queues),
            self._shape.slots,
        )

    def start(self) -> None:
        """Start all services."""
        self._keeper.start()
        self._supervisor.start()
        if self._shape.schedules:
            self.run_scheduler()
        self._announce("worker_started")

    def run_scheduler(self) -> None:
        """Fire schedules from now on, if this process did not."""
        if self._scheduling is None and not self._retired:
            self._scheduling = SchedulerThread(self._app, self._shape.name)
            self._scheduling.start()

    def _announce(self, name: WorkerEventName) -> None:
        self.announcer.worker(name, self._shape.queues, self._shape.slots)

    @property
    def presence(self) -> WorkerState:
        """How this process fares; offline once nobody is left to renew its leases."""
        if self._herald is None or not self._keeper.alive:
            return WorkerState.OFFLINE
        return self._herald.state

    async def until_empty(self) -> None:
        """Return once nothing is due and nothing runs."""
        while True:
            if not self._dispatcher.idle or len(self._holdings) or self._claimer.beside:
                # What runs or is being settled may yet enqueue, and what is being claimed beside
                # is locked: the claims since then count.
                self._claimer.empty_claims = 0
            elif self._claimer.empty_claims >= _EMPTY_CLAIMS:
                return
            else:
                self._claimer.wake()
            await asyncio.sleep(_LOOK)

    def stop_taking_work(self) -> None:
        """Take no more work, fire no more schedules, and give back what has not started."""
        if self._herald is not None:
            self._herald.state = WorkerState.DRAINING
        if not self._retired:
            self._retired = True
            self._announce("worker_stopping")
        if self._scheduling is not None:
            self._scheduling.stop_taking_work()
        self._claimer.stop()
        self._seconder.stop()
        self._dispatcher.stop_taking_work()

    async def drain(self, grace: float) -> bool:
        """Take no more work, give back what has not started, let the rest end within the grace.

        What has not ended shortly before the grace is over is stopped, and given back when it
        has ended. False: some handler has not, and its lease is still held.
        """
        began = boottime()
        self.stop_taking_work()
        # A claim that was on its way is given back before anything is judged.
        within = min(grace, _CLAIM_WITHIN)
        claiming = (self._claimer, self._seconder)
        await asyncio.gather(*(self._supervisor.stop(each, within=within) for each in claiming))
        stop_within = self._defaults.stop_within.total_seconds()
        if not await self._idle_by(began + max(grace - stop_within, 0)):
            for held in self._holdings:
                if held.phase in ACTIVE_PHASES:
                    held.stop(StopReason.DRAIN, boottime())
            await self._idle_by(began + grace)
        ended = self._dispatcher.idle
        try:
            async with asyncio.timeout(max(began + grace - boottime(), stop_within)):
                await self._settler.emptied()
        except TimeoutError:
            log.warning("draining: not everything could be settled; the leases will run out")
        return ended

    async def _idle_by(self, instant: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(instant - boottime(), 0)):
                await self._dispatcher.until_idle()
        return self._dispatcher.idle

    async def stop(self) -> None:
        """Stop all services, in reverse, and let listeners hear the last of it."""
        if self._scheduling is not None:
            await self._scheduling.stop()
        await self._supervisor.stop_all()
        self._announce("worker_stopped")
        await self._app.hooks.listeners.aclose()
        await self._ways.close()
        await self._keeper.stop(self._herald.sign_off if self._herald else None)
