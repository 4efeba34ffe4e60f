"""Queues: how much waits in each, since when, who works on it; pause, let go on, limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.admin import EVERY_QUEUE, Admin, Scope
from tenure.server.access import Caller
from tenure.server.pages import pausing, queued
from tenure.server.pages.forms import asked, to, why, written
from tenure.server.pages.leased import held
from tenure.server.pages.rendering import back, render
from tenure.server.pages.visiting import Looking, Operating, Sent
from tenure.server.parts import Hiding, Verbs
from tenure.server.routes import figures, installation, system
from tenure.server.shapes.figures import DepthOut, PaceOut
from tenure.server.shapes.installation import LimitIn, QueueOut, WorkerOut

router: APIRouter = APIRouter()
_ERRORS = 5
_LEASES = 20
_MINUTES = 30


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of all queues that the visitor may see."""

    depths: Mapping[str, DepthOut]
    set_for: Mapping[str, QueueOut]
    paces: Mapping[str, PaceOut]
    workers: list[WorkerOut]

    def queue(self, name: str) -> queued.Queue:
        """One of them."""
        row = self.set_for.get(name)
        return queued.Queue(
            name=name,
            depth=self.depths.get(name) or queued.empty(name),
            pause=queued.paused(row),
            limit=None if row is None else row.max_running,
            workers=queued.takers(self.workers, name),
            pace=self.paces.get(name),
        )

    @property
    def all(self) -> QueueOut | None:
        """What is set for the whole installation."""
        return self.set_for.get(EVERY_QUEUE)


async def _known(request: Request, caller: Caller, admin: Admin) -> _Known:
    depths = await figures.depths(caller, request)
    paces = await figures.paces(caller, admin, request, minutes=_MINUTES)
    rows = await installation.queues(caller, admin)
    workers = await installation.workers(caller, admin)
    return _Known(
        {one.queue: one for one in depths.queues},
        {one.name: one for one in rows.queues},
        {one.queue: one for one in paces.queues},
        workers.workers,
    )


@router.get("/queues")
async def queues(request: Request, caller: Looking, admin: Verbs) -> Response:
    """Every known queue."""
    known = await _known(request, caller, admin)
    return render(
        request,
        caller,
        "queues.html",
        queues=[known.queue(name) for name in known.depths],
        all_paused=queued.paused(known.all),
        all_limit=None if known.all is None else known.all.max_running,
        minutes=_MINUTES,
    )


@router.get("/queues/{name:path}")
async def queue(
    name: str, request: Request, caller: Looking, admin: Verbs, hiding: Hiding
) -> Response:
    """One queue: what is late since when, who works on it, why jobs fail."""
    caller.must(Scope.READ, name)
    known = await _known(request, caller, admin)
    groups = await figures.groups(caller, admin, hiding, queue=name, page_size=200)
    leases = await system.leases(caller, admin, queue=name, page_size=_LEASES)
    return render(
        request,
        caller,
        "queue.html",
        queue=known.queue(name),
        known=name in known.depths,
        all_paused=queued.paused(known.all),
        errors=sorted(groups.groups, key=lambda one: -one.count.value)[:_ERRORS],
        leases=[held(one) for one in leases.leases],
        names={one.id: one.name for one in known.workers},
        minutes=_MINUTES,
    )


@router.post("/queues/{name:path}:pause")
async def pause(
    name: str, request: Request, caller: Operating, admin: Verbs, fields: Sent
) -> Response:
    """Let nothing be claimed from a queue."""
    await installation.pause(name, caller, admin, pausing.pause(fields))
    return back(request, to(fields, _path(name)), f"{_named(name)} paused.")


@router.post("/queues/{name:path}:resume")
async def resume(
    name: str, request: Request, caller: Operating, admin: Verbs, fields: Sent
) -> Response:
    """Let a paused queue go on."""
    await installation.resume(name, caller, admin, why(fields))
    return back(request, to(fields, _path(name)), f"{_named(name)} let go on.")


@router.post("/queues/{name:path}:limit")
async def limit(
    name: str, request: Request, caller: Operating, admin: Verbs, fields: Sent
) -> Response:
    """Let at most so many jobs of a queue run at once."""
    most = written(fields, "max_running")
    body = asked(LimitIn, max_running=most, reason=written(fields, "reason"))
    await installation.limit(name, body, caller, admin)
    said = "no limit any more" if most is None else f"at most {most} at once"
    return back(request, _path(name), f"{_named(name)} limited: {said}.")


def _path(name: str) -> str:
    return "/queues" if name == EVERY_QUEUE else f"/queues/{quote(name)}"


def _named(name: str) -> str:
    return "All queues are" if name == EVERY_QUEUE else f"Queue {name} is"
