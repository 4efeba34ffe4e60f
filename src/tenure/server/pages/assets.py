"""The files that pages need: ours, and those of others, kept here with licence and hash."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import Response

from tenure.server.pages.rendering import SAFE
from tenure.server.problems import Problem

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

router: APIRouter = APIRouter()
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Its address names what is in it.
_KEPT = "public, max-age=31536000, immutable"


@cache
def _known() -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}

    def look(folder: "Traversable", before: str) -> None:
        for one in folder.iterdir():
            if one.is_dir():
                look(one, f"{before}{one.name}/")
            elif kind := _KINDS.get(f".{one.name.rpartition('.')[2]}"):
                found[before + one.name] = kind, one.read_bytes()

    look(files("tenure.server.pages").joinpath("static"), "")
    return found


@router.get("/static/{name:path}")
async def asset(name: str) -> Response:
    """One file; anybody may have it, for the page to sign in needs some."""
    if name not in _known():
        raise Problem("not-found", "there is no such file")
    kind, content = _known()[name]
    return Response(content, media_type=kind, headers={**SAFE, "Cache-Control": _KEPT})
