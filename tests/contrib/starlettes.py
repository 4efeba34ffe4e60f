"""Programs of Starlette and FastAPI as their users meet them: asked in this process, or served by
a real uvicorn in one of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar

import httpx

from support.binaries import ROOT
from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    from starlette.applications import Starlette

T = TypeVar("T")
SHOP = ROOT / "examples" / "fastapi_shop"


@asynccontextmanager
async def started(program: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a program in this process, from its start to its end."""
    async with program.router.lifespan_context(program), asking(program) as client:
        yield client


def asking(program: Starlette) -> httpx.AsyncClient:
    """A client of a program in this process, started or not; an error in it is an answer of 500."""
    transport = httpx.ASGITransport(program, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://shop")


async def eventually(look: Callable[[], Awaitable[T]], wanted: T, seconds: float = 60) -> None:
    """Return once this is what is seen."""
    async with asyncio.timeout(seconds):
        while await look() != wanted:  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


class Uvicorn:
    """One `uvicorn module:name` on a port of its own; what it says goes to a file."""

    def __init__(self, target: str, url: str, directory: Path, *words: str) -> None:
        self._log = directory / "uvicorn.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", target, "--port=0", *words],
                cwd=SHOP,
                env=os.environ | {"DATABASE_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()

    def client(self) -> httpx.Client:
        """A client of it, once it serves."""
        serving = re.compile(r"running on (http://[\d.]+:\d+)")
        assert wait_for(
            lambda: serving.search(self.log()) is not None or self.process.poll() is not None, 60
        ), self.log()
        found = serving.search(self.log())
        assert found is not None, self.log()
        return httpx.Client(base_url=found[1], timeout=30)

    def log(self) -> str:
        """What it has said so far."""
        return self._log.read_text(errors="replace")
