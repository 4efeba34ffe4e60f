"""What services are made of, put together by hand: links that can be cut, handlers that obey.

Nothing here stands in for the database; what runs handlers does, so that a test says when they end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from support.store import SECOND, A, lanes
from tenure import Tenure
from tenure._model.job import NewJob
from tenure._model.outcome import Loss, Lost
from tenure._runtime.claimer import Claimer
from tenure._runtime.confirmer import Confirmer
from tenure._runtime.dispatcher import Dispatcher, Executors, WorkerSettings
from tenure._runtime.events import RuntimeEvents
from tenure._runtime.held_leases import HeldLeases
from tenure._runtime.lease_board import Phase
from tenure._runtime.renewer import Renewer
from tenure._runtime.settler import Settler
from tenure._runtime.watchdog import Watchdog
from tenure._store.postgres.service_connection import PostgresServiceConnection
from tenure.config import DEFAULTS
from tenure.errors import Error, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.ids import JobId, WorkerId
    from tenure._model.job import JobRow
    from tenure._model.outcome import Outcome
    from tenure._runtime.execution import OnFinished
    from tenure._runtime.held_leases import HeldLease, StopReason
    from tenure._store.steps import Op
    from tenure.config import Defaults

T = TypeVar("T")


class HandBoot:
    """The boot-time clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now


class CuttableLink(PostgresServiceConnection):
    """A service's connection. While `cut`, the database is not there."""

    cut = False
    runs = 0

    async def run(self, op: Op[T]) -> T:
        if self.cut:
            op.close()
            raise Unreachable("cut by the test")
        self.runs += 1
        return await super().run(op)


DIED = Lost(Loss.OWN, Error("ProcessDied", "its own process died: SIGKILL"))
SHARED_DEATH = Lost(Loss.SHARED, Error("ProcessDied", "its worker process died: SIGKILL"))


@dataclass(eq=False)
class Obedient:
    """A handler that runs until the test ends it, and remembers what was asked of it."""

    held: HeldLease
    tell: OnFinished
    dies: bool = False
    requested: list[StopReason] = field(default_factory=list)
    killed: int = 0
    knows_of_cancel: int = 0

    def stop(self, why: StopReason) -> None:
        self.requested.append(why)

    def cancel_requested(self) -> None:
        self.knows_of_cancel += 1

    def kill(self) -> bool:
        self.killed += 1
        return self.dies

    def end(self, outcome: Outcome, log: str | None = None) -> None:
        self.tell(self.held, outcome, log)


class Way:
    """A way to run handlers that only notes them."""

    def __init__(self, *, process: HandBoot | None = None) -> None:
        self.started: list[Obedient] = []
        self._process = process

    def start(self, held: HeldLease, tell: OnFinished) -> Obedient:
        if self._process:
            # One that is there at once: the job's time begins with it.
            held.begin(Phase.IN_PROCESS, self._process.now)
        self.started.append(Obedient(held, tell, dies=self._process is not None))
        return self.started[-1]

    async def close(self) -> None: ...


class Bench:
    """The services of one process over one database, none of them running by itself."""

    def __init__(self, db: Database, boot: HandBoot) -> None:
        self.db = db
        self.boot = boot
        self.app = Tenure(db.url)
        self.defaults: Defaults = DEFAULTS
        self.held_leases = HeldLeases()
        self.settings = WorkerSettings()
        self.loop_way, self.thread_way, self.process_way = Way(), Way(), Way(process=boot)
        self.doomed: list[tuple[HeldLease, StopReason]] = []
        self.links: list[CuttableLink] = []
        self.events = RuntimeEvents()
        self.settler = Settler(db.store, self.link("settler"), self.held_leases, events=self.events)

    def link(self, name: str) -> CuttableLink:
        """One more connection of a service."""
        self.links.append(CuttableLink(self.db.url, schema="tenure", name=name, deadline=None))
        return self.links[-1]

    def task(self, name: str = "work", **options: Any) -> None:
        """Register a task of this name."""

        async def work() -> None: ...

        self.app.task(name=name, **options)(work)

    def confirmer(self) -> Confirmer:
        return Confirmer(self.db.store, self.link("confirmer"))

    def dispatcher(self, slots: int = 10, confirmer: Confirmer | None = None) -> Dispatcher:
        executors = Executors(loop=self.loop_way, thread=self.thread_way, process=self.process_way)
        return Dispatcher(
            slots=slots,
            tasks=self.app.tasks,
            held_leases=self.held_leases,
            settler=self.settler,
            executors=executors,
            settings=self.settings,
            defaults=self.defaults,
            events=self.events,
            confirmer=confirmer,
        )

    def claimer(self, dispatcher: Dispatcher, *queues: str, worker: WorkerId = A) -> Claimer:
        return Claimer(
            self.db.store,
            self.link("claimer"),
            queues=queues or ["default"],
            worker=worker,
            dispatcher=dispatcher,
            held_leases=self.held_leases,
            settings=self.settings,
            defaults=self.defaults,
            events=self.events,
        )

    def renewer(self) -> Renewer:
        return Renewer(
            self.db.store, self.link("renewer"), self.held_leases, defaults=self.defaults
        )

    def watchdog(self, dispatcher: Dispatcher | None = None, **others: Any) -> Watchdog:
        given: dict[str, Any] = {
            "loop": asyncio.get_running_loop(),
            "thread": 0,
            "release": dispatcher.release if dispatcher else lambda _held: None,
            "retry_after": dispatcher.retry_after if dispatcher else lambda _held: SECOND,
            "on_unstoppable": lambda held, why: self.doomed.append((held, why)),
            "defaults": self.defaults,
        }
        return Watchdog(self.held_leases, **given | others)

    async def enqueue(self, count: int = 1, **fields: Any) -> list[JobId]:
        """That many jobs of the task `work`."""
        task = fields.pop("task", "work")
        jobs = [NewJob(task, **fields) for _ in range(count)]
        return [answer.id for answer in await self.db.run(self.db.store.jobs.enqueue(jobs))]

    async def start(
        self, dispatcher: Dispatcher, count: int = 1, **fields: Any
    ) -> Sequence[HeldLease]:
        """Enqueue that many jobs, claim them now and have them taken up."""
        await self.enqueue(count, **fields)
        queue = fields.get("queue", "default")
        sent_at = self.boot.now
        op = self.db.store.leases.claim(lanes(queue), count=count, worker=A)
        dispatcher.take(await self.db.run(op), sent_at)
        return list(self.held_leases)[-count:]

    async def get(self, job_id: JobId) -> JobRow:
        """The job, which must be somewhere."""
        found = await self.db.run(self.db.store.jobs.get(job_id))
        assert found is not None
        return found

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.boot.advance(seconds)
        self.db.clock.advance(seconds * SECOND)

    async def close(self) -> None:
        for link in self.links:
            await link.close()
        self.app.close()
        await self.app.aclose()
