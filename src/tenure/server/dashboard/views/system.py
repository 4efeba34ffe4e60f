"""System: what the installation stands on, what the doctor finds, how it is set."""

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
# What a commit waits for, by PostgreSQL's word for it.
_WAITS = {
    "off": "nothing: what is acknowledged may be lost by a crash",
    "local": "the disk here",
    "on": "the disk here",
    "remote_write": "the disk here",
    "remote_apply": "the disk here",
}
_STANDBYS = {
    "remote_write": "and a standby's memory",
    "on": "and a standby's disk",
    "remote_apply": "and until a standby shows it",
}


@dataclass(frozen=True, slots=True)
class _Examined:
    """What the doctor found, the worst first; or that there was no time for it."""

    findings: list[FindingOut]
    too_slow: bool


@router.get("/system")
async def page(request: Request, caller: Looking, admin: AdminDep) -> Response:
    """What the installation stands on."""
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
    """What a commit waits for, in words."""
    if not durability.fsync:
        return "nothing: fsync is off, and a power cut may lose the whole database"
    words = _WAITS.get(durability.synchronous_commit, durability.synchronous_commit)
    if durability.standby_names and durability.synchronous_commit in _STANDBYS:
        return f"{words} {_STANDBYS[durability.synchronous_commit]}"
    return words
