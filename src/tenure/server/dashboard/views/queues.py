"""The queue pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure import _actions
from tenure.admin import Admin, accepts_jobs_from, is_paused
from tenure.server.auth import Caller
from tenure.server.dashboard import forms
from tenure.server.dashboard.charts import Spark, spark
from tenure.server.dashboard.filters import lease_countdown
from tenure.server.dashboard.forms import parse, text, to, why
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep, RedactorDep
from tenure.server.routes import installation, stats, system
from tenure.server.schemas.installation import (
    CountedQueueOut,
    LimitIn,
    QueueOut,
    QueueThroughputOut,
    WorkerOut,
)
from tenure.types import EVERY_QUEUE, Scope


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, as shown on a page. `pause` is set if the queue is currently paused."""

    name: str
    depth: CountedQueueOut
    pause: QueueOut | None
    workers: Sequence[WorkerOut]
    pace: QueueThroughputOut | None

    @property
    def is_served(self) -> bool:
        """Whether any worker takes jobs from the queue."""
        return bool(self.workers)

    @property
    def spark(self) -> Spark | None:
        """The queue's throughput as a sparkline."""
        return None if self.pace is None else spark(self.pace.completed, self.pace.failed)

    @property
    def ended(self) -> int:
        """Count the attempts that ended in the minutes shown."""
        return 0 if self.pace is None else sum(self.pace.completed) + self.failed

    @property
    def failed(self) -> int:
        """Count the attempts that failed in the minutes shown."""
        return 0 if self.pace is None else sum(self.pace.failed)

    @property
    def per_minute(self) -> float:
        """Attempts per minute."""
        return 0.0 if self.pace is None else self.ended / len(self.pace.completed)

    @property
    def failing(self) -> float | None:
        """The percentage of attempts that failed."""
        return 100 * self.failed / self.ended if self.ended else None


def paused(queue: QueueOut | None) -> QueueOut | None:
    """Return the queue if it is currently paused."""
    return queue if is_paused(queue, datetime.now(UTC)) else None


def takers(workers: Iterable[WorkerOut], queue: str) -> list[WorkerOut]:
    """Return the workers that take new jobs from a queue."""
    return [one for one in workers if accepts_jobs_from(one.health, one.queues, queue)]


router: APIRouter = APIRouter()
_ERRORS = 5
_LEASES = 20
_MINUTES = 30


@dataclass(frozen=True, slots=True)
class _Known:
    """All queues that the visitor may see."""

    counted: Mapping[str, CountedQueueOut]
    every_queue: QueueOut | None
    paces: Mapping[str, QueueThroughputOut]
    workers: list[WorkerOut]

    def queue(self, name: str) -> Queue:
        """Return one queue."""
        one = self.counted.get(name) or installation.counted(name)
        return Queue(
            name=name,
            depth=one,
            pause=paused(one),
            workers=takers(self.workers, name),
            pace=self.paces.get(name),
        )


async def _known(request: Request, caller: Caller, admin: Admin) -> _Known:
    found = await installation.queues(caller, admin, request)
    paces = await installation.throughput(caller, admin, request, minutes=_MINUTES)
    workers = await installation.workers(caller, admin)
    return _Known(
        {one.name: one for one in found.queues},
        found.every_queue,
        {one.queue: one for one in paces.queues},
        workers.workers,
    )


@router.get("/queues")
async def queues(request: Request, caller: Looking, admin: AdminDep) -> Response:
    """Show every known queue."""
    known = await _known(request, caller, admin)
    return render(
        request,
        caller,
        "queues.html",
        queues=[known.queue(name) for name in known.counted],
        all_paused=paused(known.every_queue),
        all_limit=None if known.every_queue is None else known.every_queue.max_running,
        minutes=_MINUTES,
    )


@router.get("/queues/{name:path}")
async def queue(
    name: str, request: Request, caller: Looking, admin: AdminDep, hiding: RedactorDep
) -> Response:
    """Show one queue: how far behind it is, its workers, and its errors."""
    caller.must(Scope.READ, name)
    known = await _known(request, caller, admin)
    groups = await stats.groups(caller, admin, hiding, queue=name, page_size=200)
    leases = await system.leases(caller, admin, queue=name, page_size=_LEASES)
    return render(
        request,
        caller,
        "queue.html",
        queue=known.queue(name),
        known=name in known.counted,
        all_paused=paused(known.every_queue),
        errors=sorted(groups.groups, key=lambda one: -one.count.value)[:_ERRORS],
        leases=[lease_countdown(one) for one in leases.leases],
        names={one.id: one.name for one in known.workers},
        minutes=_MINUTES,
    )


@router.post("/queues/{name:path}:pause")
async def pause(
    name: str, request: Request, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Pause a queue."""
    await installation.pause(name, caller, admin, forms.pause(fields))
    return back(request, to(fields, _path(name)), _actions.PAUSE_QUEUE.outcome(name).sentence)


@router.post("/queues/{name:path}:resume")
async def resume(
    name: str, request: Request, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Resume a queue."""
    await installation.resume(name, caller, admin, why(fields))
    return back(request, to(fields, _path(name)), _actions.RESUME_QUEUE.outcome(name).sentence)


@router.post("/queues/{name:path}:limit")
async def limit(
    name: str, request: Request, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Set a queue's concurrency limit."""
    most = text(fields, "max_running")
    body = parse(LimitIn, max_running=most, reason=text(fields, "reason"))
    await installation.limit(name, body, caller, admin)
    status = "unlimited" if most is None else "limited"
    outcome = _actions.LIMIT_QUEUE.outcome(name, status, limit=most)
    return back(request, _path(name), outcome.sentence)


def _path(name: str) -> str:
    return "/queues" if name == EVERY_QUEUE else f"/queues/{quote(name)}"
