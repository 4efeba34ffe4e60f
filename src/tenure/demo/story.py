"""The demo's events: a worker is killed, the scheduler stops for a while, and operators retry,
discard and cancel jobs.
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
    """Act as Ana, who runs the shop."""
    return By("ana", reason=reason)


def ben(reason: str) -> By:
    """Act as Ben, who runs the payments."""
    return By("ben", reason=reason)


def sign_in_code() -> str:
    """Create a one-day access token with all scopes, and return a one-time sign-in code for it."""
    by = By("tenure demo", reason="to sign in")
    token = app.admin.tokens.create("demo", by, scopes=list(Scope), expires_in=86_400).token
    return app.admin.sessions.create_code(token.id, by).secret


def open_shop() -> None:
    """Set limits, pause a queue, create schedules, and enqueue the first jobs."""
    admin = app.admin
    admin.queues.limit("payments", 2, ben("the bank allows two at once"))
    noon = datetime.now(UTC) + timedelta(hours=1)
    admin.queues.pause("exports", ana("the warehouse is moving"), until=noon)
    counting, archiving = ana("stock count"), ben("the archive is full")
    admin.schedules.create("imports.stock", stock, counting, every=5, missed="skip")
    admin.schedules.create("imports.archive", stock, archiving, cron="30 2 * * *", missed="all")
    admin.schedules.pause("imports.archive", archiving)
    for supplier in ("nordwind", "kontor"):
        catalogue.using(key=supplier, tags=["first"]).enqueue(supplier, products=900)
    for country in ("PT", "GR", "ES", "PT", "PT"):
        tax.enqueue(country, 2025)
    order = next(orders())
    held = charge.using(tags=["dispute"]).enqueue(order, card_token="tok_0002")  # noqa: S106 - it opens nothing
    admin.jobs.hold([held.id], ben("disputed by the customer"))
    late = charge.using(delay=3600).enqueue(order, card_token="tok_0003")  # noqa: S106
    admin.jobs.cancel([late.id], ben("ordered twice"))


def retry_taxes() -> bool:
    """Start a slow operation that retries tax jobs, unless the last one is still running."""
    operations = app.admin.operations
    if not all(one.state.is_ended for one in operations.list(count=2)):
        return False
    of = Filter(state=State.FAILED, task=tax.name)
    operations.start("retry", of, ana("the rates are entered"), rate=1)
    return True


def discard_declined() -> None:
    """Start a fast operation that discards declined payments."""
    of = Filter(state=State.FAILED, task=charge.name)
    app.admin.operations.start("discard", of, ben("the customers know"))


def cancel_import() -> None:
    """Cancel the newest import."""
    running = app.admin.jobs.list(State.RUNNING, task=catalogue.name, count=1).jobs
    app.admin.jobs.cancel([job.id for job in running], ana("the supplier sends a new list"))


def importer() -> str | None:
    """Return the name of a worker running an import."""
    running = app.admin.jobs.list(State.RUNNING, task=catalogue.name).jobs
    names = {row.id: row.name for row in app.admin.workers.list()}
    # A child is named after its worker, with a number.
    children = (names[job.claimed_by] for job in running if job.claimed_by in names)
    return next((name.partition("/")[0] for name in children), None)


TARGET = "tenure.demo.shop:app"
_LOOK = 0.2
# Seconds after the start. The worker is killed once it is running an import.
_KILLED_AT = 3.0
_REPLACED_AFTER = 4.0
_SCHEDULER_AT = 8.0
_SCHEDULER_AWAY = 12.0
_MINUTE = 60.0


class Story:
    """The scheduled events. `say` prints what happens."""

    def __init__(self, processes: Processes, say: Callable[[str], None]) -> None:
        self._processes = processes
        self._say = say
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._began = 0.0

    def work(self, name: str) -> None:
        """Start a worker without schedules, so a missing scheduler is noticeable."""
        options = ("--concurrency", "6", "--grace", "2", "--no-schedules", "--name", name)
        self._processes.start(name, "worker", TARGET, *options)

    def run(self, seconds: float | None) -> None:
        """Run the events for this many seconds, or until interrupted."""
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
        self._say(f"{victim} was killed; its leases expire, and other workers take its jobs")
        self._in(_REPLACED_AFTER, self._replace)

    def _replace(self) -> None:
        self.work("worker-3")
        self._say("worker-3 was started as its replacement")

    def _start_scheduler(self) -> None:
        self._processes.start("scheduler", "scheduler", TARGET)
        self._say("the scheduler was started; earlier runs were missed or are late")
        self._in(_MINUTE, self._stop_scheduler)

    def _stop_scheduler(self) -> None:
        self._processes.stop("scheduler")
        self._say("the scheduler was stopped for a while")
        self._in(_SCHEDULER_AWAY, self._start_scheduler)

    def _retry(self) -> None:
        if retry_taxes():
            self._say("ana retries dead letters, one per second; some will fail again")
        self._in(_MINUTE, self._retry)

    def _discard(self) -> None:
        discard_declined()
        self._in(_MINUTE, self._discard)
