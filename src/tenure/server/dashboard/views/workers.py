"""The workers page: each worker's state, leases and slots, and a button to drain it."""

from collections import Counter, defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure._actions import DRAIN_WORKER
from tenure.server.dashboard.filters import lease_countdown
from tenure.server.dashboard.forms import why
from tenure.server.dashboard.rendering import back, render
from tenure.server.dashboard.session import Looking, Operating, Sent
from tenure.server.dependencies import AdminDep
from tenure.server.problems import ProblemError
from tenure.server.routes import installation, system
from tenure.server.schemas.installation import WorkerOut
from tenure.types import Health

if TYPE_CHECKING:
    from tenure.server.dashboard.filters import LeaseCountdown

router: APIRouter = APIRouter()
_SHOWN = 200
_LEASES = 200
# Workers that need attention come first, offline ones last.
_ORDER = (Health.STALE, Health.DRAINING, Health.ACTIVE, Health.IDLE, Health.OFFLINE)
_GONE = (Health.STALE, Health.OFFLINE)


@router.get("/workers")
async def workers(
    request: Request, caller: Looking, admin: AdminDep, show: Health | None = None
) -> Response:
    """Show all workers, or those in one state."""
    known = (await installation.workers(caller, admin)).workers
    leases = await system.leases(caller, admin, page_size=_LEASES)
    holds: defaultdict[str, list[LeaseCountdown]] = defaultdict(list)
    for lease in leases.leases:
        holds[lease.worker_id].append(lease_countdown(lease))
    there = [one for one in known if one.health not in _GONE]
    wanted = known if show is None else [one for one in known if one.health is show]
    wanted = sorted(wanted, key=lambda one: (_ORDER.index(one.health), one.name, one.id))
    return render(
        request,
        caller,
        "workers.html",
        workers=wanted[:_SHOWN],
        more=max(0, len(wanted) - _SHOWN),
        known=len(known),
        counts=Counter(one.health for one in known),
        kinds=_ORDER,
        show=show,
        holds=holds,
        slots=sum(one.slots for one in there),
        running=sum(one.running for one in there),
        usual=_usual(there),
    )


def _usual(workers: list[WorkerOut]) -> dict[str, str]:
    """Find the version that most live workers run, for each language."""
    versions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in workers:
        versions[one.language][one.version] += 1
    return {language: counted.most_common(1)[0][0] for language, counted in versions.items()}


@router.post("/workers/{worker_id}:drain")
async def drain(
    worker_id: str, request: Request, caller: Operating, admin: AdminDep, fields: Sent
) -> Response:
    """Ask a worker to take no new jobs and to stop."""
    try:
        worker = UUID(worker_id)
    except ValueError:
        sentence = DRAIN_WORKER.outcome(worker_id, result=False).sentence
        raise ProblemError("not-found", sentence) from None
    await installation.drain(worker, caller, admin, why(fields))
    return back(request, "/workers", DRAIN_WORKER.outcome(worker_id).sentence)
