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

from tenure._executors.loop import LoopExecutor
from tenure._executors.processes import ProcessExecutor
from tenure._executors.threads import ThreadExecutor
from tenure._model.event import WorkerEventName
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker, Presence
from tenure._services.advancer import Advancer
from tenure._services.announcer import Announcer
from tenure._services.base import Service, log
from tenure._services.board import RUNNING, Board
from tenure._services.claimer import Claimer
from tenure._services.confirmer import Confirmer
from tenure._services.dispatcher import Dispatcher, Notes, Ways
from tenure._services.folder import Folder
from tenure._services.holdings import Held, Holdings, Why
from tenure._services.keeper import Keeper
from tenure._services.keeper_link import KeeperLink
from tenure._services.presence import Herald
from tenure._services.pruner import Pruner
from tenure._services.renewer import Renewer, deadline
from tenure._services.rescuer import Rescuer
from tenure._services.seconder import Seconder
from tenure._services.settler import Settler
from tenure._services.sheet import Sheet
from tenure._services.supervisor import Supervisor
from tenure._services.tally import Tallier, Tally, both
from tenure._services.watcher import Watcher
from tenure.app import Tenure
from tenure.job import boottime
from tenure.worker.beginning import release, wakeups
from tenure.worker.scheduling import Scheduling
from tenure.worker.telling import completed, settled

_LOOK = 0.01
# The first may have begun before the last settle was committed; the second has not.
_EMPTY_CLAIMS = 2
_CLAIM_WITHIN = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one process that runs work is to be."""

    worker: WorkerId
    name: str
    queues: Sequence[str]
    slots: int
    board: Board | None = None
    sheet: Sheet | None = None
    handler: Sequence[str] | None = None
    schedules: bool = False
    tells: bool = False


class Core:
    """One process' services: handlers on this loop, what must survive them on the keeper's."""

    def __init__(
        self,
        app: Tenure,
        shape: Shape,
        *,
        on_doomed: Callable[[Held, Why], None],
        on_drain: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._shape = shape
        self._on_doomed = on_doomed
        self._on_drain = on_drain or self.retire
        self._defaults = app.defaults
        self._loop = asyncio.get_running_loop()
        self._holdings = Holdings(shape.board)
        self._notes = Notes(backoff=app.defaults.backoff)
        engine, store = app.engine, app.engine.store
        engine.allow(shape.slots)
        name = f"tenure {shape.name}"
        self._settler = Settler(store, engine.link(f"{name} settler"), self._holdings)
        self._keeper = Keeper(self._kept)
        soon = self._defaults.stop_within / 2
        confirmer = Confirmer(store, self._kept_link(f"{name} confirmer", deadline=soon))
        process = None
        if shape.handler is not None:
            process = ProcessExecutor(shape.handler, keep=shape.slots, confirm=confirmer.confirm)
        self._ways = Ways(
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
            self._kept_link(f"{name} claimer"),
            queues=shape.queues,
            worker=shape.worker,
            dispatcher=self._dispatcher,
            holdings=self._holdings,
            notes=self._notes,
            defaults=self._defaults,
            has_processes=process is not None,
        )
        self._seconder = Seconder(
            self._claimer, self._kept_link(f"{name} claimer 2"), defaults=self._defaults
        )
        self._dispatcher.on_free = self._claimer.slot_freed
        self.announcer: Announcer = Announcer(app.hooks.listeners, worker=shape.name)
        self._dispatcher.on_started = self.announcer.started
        self._dispatcher.on_completed = self.announcer.completed
        self._settler.on_settled = self.announcer.settled
        self._claimer.on_rescued = self.announcer.rescued
        self._tally = Tally()
        if shape.sheet is not None:
            self._count()
        if shape.tells:
            self._dispatcher.on_completed = both(completed, self._dispatcher.on_completed)
            self._settler.on_settled = both(settled, self._settler.on_settled)
        self._scheduling: Scheduling | None = None
        hearing = wakeups(app, shape.name, self._heard)
        pruner = Pruner(store, engine.link(f"{name} pruner"))
        folder = Folder(store, engine.link(f"{name} folder"))
        claiming = [confirmer, self._claimer, self._seconder]
        services = [self._settler, *claiming, *hearing, pruner, folder]
        self._supervisor = Supervisor(services)
        self._services: list[Service] = list(services)
        self._renewer: Renewer | None = None
        self._herald: Herald | None = None
        self._retired = False
        self._thread = threading.get_ident()

    def _kept_link(self, name: str, *, deadline: timedelta | None = None) -> KeeperLink:
        return KeeperLink(self._keeper, lambda: self._app.engine.link(name, deadline=deadline))

    def _count(self) -> None:
        """Have what is announced counted too."""
        tally, announcer = self._tally, self.announcer
        self._dispatcher.on_started = both(tally.start, announcer.started)
        self._dispatcher.on_completed = both(tally.complete, announcer.completed)
        self._settler.on_settled = both(tally.settle, announcer.settled)
        self._claimer.on_rescued = both(tally.rescue, announcer.rescued)

    def counts(self) -> dict[str, Any]:
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
            **self._tally.counts(),
        }

    def _kept(self) -> Sequence[Service]:
        """The services of the keeper's thread; made there, because a link belongs to its loop."""
        engine, store = self._app.engine, self._app.engine.store
        name = f"tenure {self._shape.name}"
        renewing = engine.link(f"{name} renewer", deadline=deadline(self._defaults.lease))
        beating = engine.link(f"{name} presence")
        watcher = Watcher(
            self._holdings,
            loop=self._loop,
            thread=self._thread,
            give_back=self._dispatcher.give_back,
            retry_after=self._dispatcher.retry_after,
            on_doomed=self._on_doomed,
            defaults=self._defaults,
            board=self._shape.board,
        )
        self._herald = Herald(
            store,
            beating,
            me=self._me(),
            holdings=self._holdings,
            watcher=watcher,
            notes=self._notes,
            on_drain=self._drain_from_keeper,
            defaults=self._defaults,
        )
        rescuer = Rescuer(store, beating, defaults=self._defaults, holdings=self._holdings)
        rescuer.on_rescued = both(self._tally.rescue, self.announcer.rescued)
        self._claimer.on_empty = lambda: self._keeper.call(rescuer.nudge)
        renewer = self._renewer = Renewer(store, renewing, self._holdings, defaults=self._defaults)
        advancer = Advancer(
            store, beating, engine.link(f"{name} advancer"), defaults=self._defaults
        )
        kept: list[Service] = [renewer, watcher, self._herald, rescuer, advancer]
        self._services += kept
        if self._shape.sheet is not None:
            kept.append(Tallier(self._shape.sheet, self.counts))
        return kept

    def _heard(self, word: str) -> None:
        self._claimer.wake(word)
        if self._scheduling is not None:
            self._scheduling.wake(word)

    def _drain_from_keeper(self) -> None:
        self._loop.call_soon_threadsafe(self._on_drain)

    def _me(self) -> NewWorker:
        return NewWorker(
            self._shape.worker,
            self._shape.name,
            socket.gethostname(),
            os.getpid(),
            release(),
            list(self._shape.queues),
            self._shape.slots,
        )

    def start(self) -> None:
        """Start all services."""
        self._keeper.start()
        self._supervisor.start()
        if self._shape.schedules:
            self.take_schedules()
        self._announce("worker_started")

    def take_schedules(self) -> None:
        """Fire schedules from now on, if this process did not."""
        if self._scheduling is None and not self._retired:
            self._scheduling = Scheduling(self._app, self._shape.name)
            self._scheduling.start()

    def _announce(self, name: WorkerEventName) -> None:
        self.announcer.worker(name, self._shape.queues, self._shape.slots)

    @property
    def presence(self) -> Presence:
        """How this process fares; offline once nobody is left to renew its leases."""
        if self._herald is None or not self._keeper.alive:
            return Presence.OFFLINE
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

    def retire(self) -> None:
        """Take no more work, fire no more schedules, and give back what has not started."""
        if self._herald is not None:
            self._herald.state = Presence.DRAINING
        if not self._retired:
            self._retired = True
            self._announce("worker_stopping")
        if self._scheduling is not None:
            self._scheduling.retire()
        self._claimer.stop()
        self._seconder.stop()
        self._dispatcher.retire()

    async def drain(self, grace: float) -> bool:
        """Take no more work, give back what has not started, let the rest end within the grace.

        What has not ended shortly before the grace is over is stopped, and given back when it
        has ended. False: some handler has not, and its lease is still held.
        """
        began = boottime()
        self.retire()
        # A claim that was on its way is given back before anything is judged.
        within = min(grace, _CLAIM_WITHIN)
        claiming = (self._claimer, self._seconder)
        await asyncio.gather(*(self._supervisor.stop(each, within=within) for each in claiming))
        stop_within = self._defaults.stop_within.total_seconds()
        if not await self._idle_by(began + max(grace - stop_within, 0)):
            for held in self._holdings:
                if held.phase in RUNNING:
                    held.stop(Why.DRAIN, boottime())
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
        await self._keeper.stop(self._herald.farewell if self._herald else None)
