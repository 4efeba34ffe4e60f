"""System: what the installation stands on, what the doctor finds, how it is set."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from tenure.admin import Level
from tenure.server.access import Caller
from tenure.server.pages.rendering import render
from tenure.server.pages.visiting import Looking
from tenure.server.parts import Verbs
from tenure.server.problems import Problem
from tenure.server.routes import installation, system
from tenure.server.shapes.system import DurabilityOut, FindingOut

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
async def page(request: Request, caller: Looking, admin: Verbs) -> Response:
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
    except Problem as problem:
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
