"""Assemble the services of one process that runs jobs, with or without a parent."""

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
from tenure._runtime.confirmer import Confirmer
from tenure._runtime.counters import CountersWriter, SharedCounters, WorkerCounters
from tenure._runtime.dispatcher import Dispatcher, Executors, WorkerSettings
from tenure._runtime.events import EventEmitter, RuntimeEvents, log_successes
from tenure._runtime.heartbeat import Heartbeat
from tenure._runtime.held_leases import HeldLease, HeldLeases, StopReason
from tenure._runtime.host import WorkerHost
from tenure._runtime.in_processes import ProcessExecutor
from tenure._runtime.lease_board import ACTIVE_PHASES, LeaseBoard
from tenure._runtime.on_loop import LoopExecutor
from tenure._runtime.on_threads import ThreadExecutor
from tenure._runtime.renewer import Renewer, deadline
from tenure._runtime.scheduler_thread import SCHEDULER_WAKEUPS, SchedulerThread
from tenure._runtime.settler import Settler
from tenure._runtime.startup import package_version, wakeups
from tenure._runtime.watchdog import Watchdog
from tenure._services.base import Service, Supervisor, log
from tenure._services.operations import OperationRunner
from tenure._services.pruner import Pruner
from tenure._services.rescuer import Rescuer
from tenure._services.rollup import RollupService
from tenure._services.thread import ServiceThread, ServiceThreadConnection

_LOOK = 0.01
# The first empty claim may have started before the last settle was committed. The second can't
# have.
_EMPTY_CLAIMS = 2
_CLAIM_WITHIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    worker: WorkerId
    name: str
    queues: Sequence[str]
    slots: int
    # The lease for every claim (default: the job's, the queue's or the installation's).
    lease: timedelta | None = None
    board: LeaseBoard | None = None
    sheet: SharedCounters | None = None
    handler: Sequence[str] | None = None
    schedules: bool = False
    log_successes: bool = False


class WorkerRuntime:
    """The services of one process: handlers on this loop, leases on a service thread."""

    def __init__(
        self,
        app: WorkerHost,
        options: RuntimeOptions,
        *,
        on_unstoppable: Callable[[HeldLease, StopReason], None],
        on_drain: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._options = options
        self._on_unstoppable = on_unstoppable
        self._on_drain = on_drain or self.stop_taking_work
        self._defaults = app.defaults
        self._loop = asyncio.get_running_loop()
        self._held_leases = HeldLeases(options.board)
        self._settings = WorkerSettings(backoff=app.defaults.backoff)
        engine, store = app.engine, app.engine.store
        engine.reserve_connections(options.slots)
        name = f"tenure {options.name}"
        self._counters = WorkerCounters()
        self.emitter: EventEmitter = EventEmitter(app.hooks.listeners, worker=options.name)
        self._events = self._subscribe()
        self._settler = Settler(
            store,
            engine.service_connection(f"{name} settler"),
            self._held_leases,
            events=self._events,
            sealing=engine.sealing,
        )
        self._service_thread = ServiceThread(self._build_services)
        soon = self._defaults.stop_within / 2
        confirmer = Confirmer(store, self._thread_connection(f"{name} confirmer", deadline=soon))
        process = None
        if options.handler is not None:
            process = ProcessExecutor(
                options.handler, keep=options.slots, confirm=confirmer.confirm
            )
        self._process = process
        self._executors = Executors(
            loop=LoopExecutor(engine, app.hooks),
            thread=ThreadExecutor(engine, app.hooks, slots=options.slots),
            process=process,
        )
        self._dispatcher = Dispatcher(
            slots=options.slots,
            tasks=app.tasks,
            held_leases=self._held_leases,
            settler=self._settler,
            executors=self._executors,
            settings=self._settings,
            defaults=self._defaults,
            events=self._events,
            sealing=engine.sealing,
            confirmer=confirmer,
            loop=self._loop,
        )
        self._claimer = Claimer(
            store,
            self._thread_connection(f"{name} claimer"),
            queues=options.queues,
            worker=options.worker,
            dispatcher=self._dispatcher,
            held_leases=self._held_leases,
            settings=self._settings,
            defaults=self._defaults,
            events=self._events,
            has_processes=process is not None,
            lease=options.lease,
        )
        self._backlog_claimer = BacklogClaimer(
            self._claimer,
            self._thread_connection(f"{name} claimer 2"),
            defaults=self._defaults,
            events=self._events,
        )
        self._scheduler_thread: SchedulerThread | None = None
        wakeup_services = wakeups(app, options.name, self._on_wakeup)
        pruner = Pruner(store, engine.service_connection(f"{name} pruner"))
        rollup = RollupService(store, engine.service_connection(f"{name} folder"))
        claiming = [confirmer, self._claimer, self._backlog_claimer]
        services = [self._settler, *claiming, *wakeup_services, pruner, rollup]
        self._supervisor = Supervisor(services)
        self._services: list[Service] = list(services)
        self._renewer: Renewer | None = None
        self._heartbeat: Heartbeat | None = None
        self._retired = False
        self._thread = threading.get_ident()

    def _thread_connection(
        self, name: str, *, deadline: timedelta | None = None
    ) -> ServiceThreadConnection:
        return ServiceThreadConnection(
            self._service_thread,
            lambda: self._app.engine.service_connection(name, deadline=deadline),
        )

    def _subscribe(self) -> RuntimeEvents:
        """Create the events. They notify the log first, then the counters, then the listeners."""
        events = RuntimeEvents()
        if self._options.log_successes:
            log_successes(events)
        if self._options.sheet is not None:
            self._counters.subscribe_to(events)
        self.emitter.subscribe_to(events)
        return events

    def metrics_snapshot(self) -> dict[str, Any]:
        """Return this process's counters and gauges, from any thread."""
        ticks, jobs, errors = self._scheduler_thread.fired if self._scheduler_thread else (0, 0, 0)
        failed = Counter({"scheduler": errors})
        for service in list(self._services):
            failed[service.name] += service.errors
        return {
            "slots": self._options.slots,
            "running": self._held_leases.running,
            "leases": len(self._held_leases),
            "last_heartbeat_at": self._heartbeat.last_heartbeat_at if self._heartbeat else 0.0,
            "claims": self._claimer.claims,
            "claimed": self._claimer.claimed,
            "renewed": self._renewer.renewed if self._renewer else 0,
            "late": self._renewer.late if self._renewer else 0,
            "ticks": ticks,
            "tick_jobs": jobs,
            "errors": dict(failed),
            "processes": dict(self._process.ended) if self._process else {},
            **self._counters.counts(),
        }

    def _build_services(self) -> Sequence[Service]:
        """Create the service thread's services. Its loop owns their connections."""
        engine, store = self._app.engine, self._app.engine.store
        name = f"tenure {self._options.name}"
        renewal_connection = engine.service_connection(
            f"{name} renewer", deadline=deadline(self._defaults.lease)
        )
        heartbeat_connection = engine.service_connection(f"{name} presence")
        watchdog = Watchdog(
            self._held_leases,
            loop=self._loop,
            thread=self._thread,
            release=self._dispatcher.release,
            retry_after=self._dispatcher.retry_after,
            on_unstoppable=self._on_unstoppable,
            defaults=self._defaults,
            board=self._options.board,
        )
        self._heartbeat = Heartbeat(
            store,
            heartbeat_connection,
            me=self._new_worker(),
            held_leases=self._held_leases,
            watchdog=watchdog,
            settings=self._settings,
            on_drain=self._drain_from_service_thread,
            defaults=self._defaults,
        )
        rescuer = Rescuer(
            store,
            heartbeat_connection,
            defaults=self._defaults,
            held_leases=self._held_leases,
            on_rescued=self._events.rescued,
        )
        self._events.queue_empty.append(lambda: self._service_thread.call(rescuer.run_soon))
        renewer = self._renewer = Renewer(
            store, renewal_connection, self._held_leases, defaults=self._defaults
        )
        operation_runner = OperationRunner(
            store,
            heartbeat_connection,
            engine.service_connection(f"{name} advancer"),
            defaults=self._defaults,
        )
        services: list[Service] = [renewer, watchdog, self._heartbeat, rescuer, operation_runner]
        self._services += services
        if self._options.sheet is not None:
            services.append(CountersWriter(self._options.sheet, self.metrics_snapshot))
        return services

    def _on_wakeup(self, queue: str) -> None:
        self._claimer.wake(queue)
        if self._scheduler_thread is not None and queue in SCHEDULER_WAKEUPS:
            self._scheduler_thread.wake(queue)

    def _drain_from_service_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._on_drain)

    def _new_worker(self) -> NewWorker:
        return NewWorker(
            self._options.worker,
            self._options.name,
            socket.gethostname(),
            os.getpid(),
            package_version(),
            list(self._options.queues),
            self._options.slots,
        )

    def start(self) -> None:
        self._service_thread.start()
        self._supervisor.start()
        if self._options.schedules:
            self.run_scheduler()
        self._announce("worker_started")

    def run_scheduler(self) -> None:
        if self._scheduler_thread is None and not self._retired:
            self._scheduler_thread = SchedulerThread(self._app, self._options.name)
            self._scheduler_thread.start()

    def _announce(self, name: WorkerEventName) -> None:
        self.emitter.worker(name, self._options.queues, self._options.slots)

    @property
    def presence(self) -> WorkerState:
        """This worker's state; offline once the service thread has ended."""
        if self._heartbeat is None or not self._service_thread.alive:
            return WorkerState.OFFLINE
        return self._heartbeat.state

    async def until_empty(self) -> None:
        while True:
            if not self._dispatcher.idle or len(self._held_leases) or self._claimer.beside:
                # Running jobs may still enqueue others, and a concurrent claim locks rows. Only
                # count empty claims made after both are done.
                self._claimer.empty_claims = 0
            elif self._claimer.empty_claims >= _EMPTY_CLAIMS:
                return
            else:
                self._claimer.wake()
            await asyncio.sleep(_LOOK)

    def stop_taking_work(self) -> None:
        """Stop claiming jobs and running schedules, and release jobs that haven't started."""
        if self._heartbeat is not None:
            self._heartbeat.state = WorkerState.DRAINING
        if not self._retired:
            self._retired = True
            self._announce("worker_stopping")
        if self._scheduler_thread is not None:
            self._scheduler_thread.stop_taking_work()
        self._claimer.stop()
        self._backlog_claimer.stop()
        self._dispatcher.stop_taking_work()

    async def drain(self, grace: float) -> bool:
        """Release jobs that haven't started, and let the others finish within the grace period.

        Shortly before that period ends, handlers that are still running are stopped and their jobs
        released. Return False if a handler is still running and holds its lease.
        """
        began = boottime()
        self.stop_taking_work()
        # Jobs from a claim that was in flight are released first.
        within = min(grace, _CLAIM_WITHIN)
        claiming = (self._claimer, self._backlog_claimer)
        await asyncio.gather(
            *(self._supervisor.stop(service, within=within) for service in claiming)
        )
        stop_within = self._defaults.stop_within.total_seconds()
        if not await self._idle_by(began + max(grace - stop_within, 0)):
            for held in self._held_leases:
                if held.phase in ACTIVE_PHASES:
                    held.stop(StopReason.DRAIN, boottime())
            await self._idle_by(began + grace)
        ended = self._dispatcher.idle
        try:
            async with asyncio.timeout(max(began + grace - boottime(), stop_within)):
                await self._settler.emptied()
        except TimeoutError:
            log.warning("draining: some results were not stored, their leases will expire")
        return ended

    async def _idle_by(self, instant: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(instant - boottime(), 0)):
                await self._dispatcher.until_idle()
        return self._dispatcher.idle

    async def stop(self) -> None:
        """Stop all services in reverse order and deliver the last events."""
        if self._scheduler_thread is not None:
            await self._scheduler_thread.stop()
        await self._supervisor.stop_all()
        self._announce("worker_stopped")
        await self._app.hooks.listeners.aclose()
        await self._executors.close()
        await self._service_thread.stop(self._heartbeat.sign_off if self._heartbeat else None)
        self._app.engine.release_connections(self._options.slots)
