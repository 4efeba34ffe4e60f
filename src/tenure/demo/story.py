"""What happens in the demo, and what its operators do.

What befalls the shop, second by second: a worker is killed, the scheduler goes away and comes
back, people retry and discard and cancel.
"""

import heapq
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

from tenure.admin import By, Filter, State
from tenure.demo.processes import Processes
from tenure.demo.producer import orders
from tenure.demo.shop import app, catalogue, charge, stock, tax
from tenure.types import Scope


def ana(reason: str) -> By:
    """Ana, who looks after the shop."""
    return By("ana", reason=reason)


def ben(reason: str) -> By:
    """Ben, who looks after the money."""
    return By("ben", reason=reason)


def token() -> str:
    """The secret of an access token for everything, which lasts a day."""
    by = By("tenure demo", reason="to sign in with")
    return app.admin.tokens.create("demo", by, scopes=list(Scope), expires_in=86_400).secret


def open_shop() -> None:
    """What is there before anybody works: limits, a pause, schedules, the first jobs."""
    admin = app.admin
    admin.queues.limit("payments", 2, ben("the bank takes two at once"))
    noon = datetime.now(UTC) + timedelta(hours=1)
    admin.queues.pause("exports", ana("the warehouse moves"), until=noon)
    counting, archiving = ana("the shelves are counted"), ben("the archive is full")
    admin.schedules.create("imports.stock", stock, counting, every=5, missed="skip")
    admin.schedules.create("imports.archive", stock, archiving, cron="30 2 * * *", missed="all")
    admin.schedules.pause("imports.archive", archiving)
    for supplier in ("nordwind", "kontor"):
        catalogue.using(key=supplier, tags=["first"]).enqueue(supplier, products=900)
    for country in ("PT", "GR", "ES", "PT", "PT"):
        tax.enqueue(country, 2025)
    order = next(orders())
    held = charge.using(tags=["dispute"]).enqueue(order, card_token="tok_0002")  # noqa: S106 - it opens nothing
    admin.jobs.hold([held.id], ben("the customer disputes it"))
    late = charge.using(delay=3600).enqueue(order, card_token="tok_0003")  # noqa: S106
    admin.jobs.cancel([late.id], ben("was ordered twice"))


def retry_taxes() -> bool:
    """Start an operation that takes its time, unless the last one still does."""
    operations = app.admin.operations
    if not all(one.state.is_ended for one in operations.list(count=2)):
        return False
    of = Filter(state=State.FAILED, task=tax.name)
    operations.start("retry", of, ana("the rates are entered"), rate=1)
    return True


def discard_declined() -> None:
    """An operation that is done at once."""
    of = Filter(state=State.FAILED, task=charge.name)
    app.admin.operations.start("discard", of, ben("the customers know"))


def cancel_import() -> None:
    """Ask the holder of the youngest import to end it."""
    found = app.admin.jobs.list(State.RUNNING, task=catalogue.name, count=1).jobs
    app.admin.jobs.cancel([job.id for job in found], ana("the supplier sends a new list"))


def importer() -> str | None:
    """The name of a worker that runs an import just now."""
    running = app.admin.jobs.list(State.RUNNING, task=catalogue.name).jobs
    names = {row.id: row.name for row in app.admin.workers.list()}
    # A worker's processes are named by it and a number.
    found = (names[job.claimed_by] for job in running if job.claimed_by in names)
    return next((name.partition("/")[0] for name in found), None)


TARGET = "tenure.demo.shop:app"
_LOOK = 0.2
# Seconds after the start. The victim is killed once it runs something that can be missed.
_KILLED_AT = 3.0
_REPLACED_AFTER = 4.0
_SCHEDULER_AT = 8.0
_SCHEDULER_AWAY = 12.0
_MINUTE = 60.0


class Story:
    """The actions that are to come, each at its second. `say` is told what happens."""

    def __init__(self, processes: Processes, say: Callable[[str], None]) -> None:
        self._processes = processes
        self._say = say
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._began = 0.0

    def work(self, name: str) -> None:
        """Start a worker. Schedules are left to the scheduler, whose absence can then be seen."""
        options = ("--concurrency", "6", "--grace", "2", "--no-schedules", "--name", name)
        self._processes.start(name, "worker", TARGET, *options)

    def run(self, seconds: float | None) -> None:
        """Let it happen, for so long or until interrupted."""
        self._began = time.monotonic()
        self._at(_KILLED_AT, self._kill)
        self._at(_SCHEDULER_AT, self._start_scheduler)
        self._at(15, self._retry)
        self._at(25, cancel_import)
        self._at(40, self._discard)
        while seconds is None or self._now() < seconds:
            while self._actions and self._actions[0][0] <= self._now():
                heapq.heappop(self._actions)[2]()
            self._processes.check()
            time.sleep(_LOOK)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _at(self, second: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._actions, (second, next(self._order), action))

    def _in(self, seconds: float, action: Callable[[], None]) -> None:
        self._at(self._now() + seconds, action)

    def _kill(self) -> None:
        victim = importer()
        if victim is None:
            self._in(_LOOK, self._kill)
            return
        self._processes.kill(victim)
        self._say(f"{victim} was killed; its leases run out, and others go on with its jobs")
        self._in(_REPLACED_AFTER, self._replace)

    def _replace(self) -> None:
        self.work("worker-3")
        self._say("worker-3 was started in its place")

    def _start_scheduler(self) -> None:
        self._processes.start("scheduler", "scheduler", TARGET)
        self._say("the scheduler was started; what was due without it is missed or late")
        self._in(_MINUTE, self._stop_scheduler)

    def _stop_scheduler(self) -> None:
        self._processes.stop("scheduler")
        self._say("the scheduler was stopped, for a while")
        self._in(_SCHEDULER_AWAY, self._start_scheduler)

    def _retry(self) -> None:
        if retry_taxes():
            self._say("ana retries dead letters, one a second; some will fail again")
        self._in(_MINUTE, self._retry)

    def _discard(self) -> None:
        discard_declined()
        self._in(_MINUTE, self._discard)
