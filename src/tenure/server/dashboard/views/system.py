"""The system page: doctor findings, database, durability, tables, settings."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.server.auth import Caller
from tenure.server.dashboard.rendering import render
from tenure.server.dashboard.session import Looking
from tenure.server.dependencies import AdminDep
from tenure.server.problems import ProblemError
from tenure.server.routes import installation, system
from tenure.server.schemas.system import DurabilityOut, FindingOut
from tenure.types import Level

router: APIRouter = APIRouter()
_WORST_FIRST = (Level.PROBLEM, Level.WARNING, Level.FINE)
# What a commit waits for, by synchronous_commit value.
_WAITS = {
    "off": "nothing: a crash can lose committed jobs",
    "local": "the local disk",
    "on": "the local disk",
    "remote_write": "the local disk",
    "remote_apply": "the local disk",
}
_STANDBYS = {
    "remote_write": "and the memory of a standby",
    "on": "and the disk of a standby",
    "remote_apply": "and until a standby has applied it",
}


@dataclass(frozen=True, slots=True)
class _Examined:
    """The doctor's findings, worst first, or a note that the checks took too long."""

    findings: list[FindingOut]
    too_slow: bool


@router.get("/system")
async def page(request: Request, caller: Looking, admin: AdminDep) -> Response:
    """Show the system page."""
    found = await system.system(caller, admin, request)
    settings = await installation.settings(caller, admin)
    return render(
        request,
        caller,
        "system.html",
        system=found,
        waits=waits_for(found.durability),
        examined=await _examined(caller, request),
        settings=settings.settings,
    )


async def _examined(caller: Caller, request: Request) -> _Examined:
    try:
        found = (await system.doctor(caller, request)).findings
    except ProblemError as problem:
        if problem.code != "too-slow":
            raise
        return _Examined([], too_slow=True)
    return _Examined(sorted(found, key=lambda one: _WORST_FIRST.index(one.level)), too_slow=False)


def waits_for(durability: DurabilityOut) -> str:
    """Describe what a commit waits for."""
    if not durability.fsync:
        return "nothing: fsync is off, so a power failure can corrupt the whole database"
    words = _WAITS.get(durability.synchronous_commit, durability.synchronous_commit)
    if durability.standby_names and durability.synchronous_commit in _STANDBYS:
        return f"{words} {_STANDBYS[durability.synchronous_commit]}"
    return words
