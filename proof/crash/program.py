"""A program with workers inside (`app.run()`), which claim when they are told to. They have no
parent, and run suspects on their loop: hundreds of lost jobs cost no processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from support.binaries import ROOT
from support.processes import die_with_parent
from tenure.worker.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tenure import Tenure

WORK = "from proof.crash.program import be; be()"
_END_WITHIN = 15.0
_GRACE = 4


class Program:
    """A process with this many workers, which claim between `begin` and `rest`. End it.

    A claim looks at as many jobs as there are slots and takes one suspect: few slots are quick.
    """

    def __init__(
        self,
        target: str,
        log: Path,
        environment: Mapping[str, str],
        *,
        count: int,
        slots: int,
        work: str = WORK,
    ) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - itself
                [sys.executable, "-c", work, target, str(count), str(slots)],
                cwd=ROOT,
                env=os.environ | {**environment},
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def begin(self) -> None:
        """Have them claim from now on."""
        self._tell("begin")

    def rest(self) -> None:
        """Have them end what they run and claim no more."""
        self._tell("rest")

    def _tell(self, word: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()

    def end(self) -> None:
        """Let them rest, and end the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def be() -> None:
    """Be that process, until there is nothing more to be told."""
    asyncio.run(_work(load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))


async def _work(app: Tenure, count: int, slots: int) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        while word := await loop.run_in_executor(None, sys.stdin.readline):
            await stack.aclose()
            if word.strip() == "begin":
                for number in range(count):
                    running = app.run(
                        concurrency=slots, grace=_GRACE, name=f"program-{os.getpid()}-{number}"
                    )
                    await stack.enter_async_context(running)
