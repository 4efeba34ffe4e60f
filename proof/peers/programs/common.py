"""What the programs share: the verbs, and the handler, which says in a file how far it is.

It runs in the peers' environments, so it stands on the standard library alone.

PEER_URL      the database, or Redis
PEER_HISTORY  the file
PEER_WAY      which of the peer's settings
PEER_WORKER   who works
PEER_SECONDS  how long a handler of this worker takes, unless a file beside the history lets it go
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

URL = os.environ.get("PEER_URL", "")
WAY = os.environ.get("PEER_WAY", "")
WORKER = os.environ.get("PEER_WORKER", "")
SECONDS = float(os.environ.get("PEER_SECONDS", "1"))
AT_ONCE = 10
_LOOK = 0.1
_LET_GO = Path(os.environ.get("PEER_HISTORY", "") + ".let-go")


def say(what: str, number: int) -> None:
    """One line, written at once and not by halves."""
    line = f"{what} {number} {WORKER} {time.time():.3f}\n"
    file = os.open(os.environ["PEER_HISTORY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def handle(number: int) -> str:
    """The handler, where handlers are functions."""
    say("start", number)
    until = time.monotonic() + SECONDS  # Runs on while the process is stopped.
    while _continues(until):
        time.sleep(_LOOK)
    say("end", number)
    return WORKER


async def ahandle(number: int) -> str:
    """The handler, where handlers are coroutines."""
    say("start", number)
    until = time.monotonic() + SECONDS
    try:
        while _continues(until):  # noqa: ASYNC110 - what it waits for comes from outside
            await asyncio.sleep(_LOOK)
    except asyncio.CancelledError:
        say("cut", number)
        raise
    say("end", number)
    return WORKER


def _continues(until: float) -> bool:
    return time.monotonic() < until and not _LET_GO.exists()


class Program(Protocol):
    """A queue: how its jobs are enqueued, worked on, and found in its store."""

    distribution: str

    async def install(self) -> None: ...

    async def enqueue(self, jobs: int) -> None:
        """Enqueue jobs with the numbers from 0 on."""
        ...

    def work(self) -> None:
        """Work until ended."""
        ...

    async def store(self) -> Mapping[int, tuple[str, Any]]:
        """Of each job that the store knows: the store's own word for its state, and the result."""
        ...


def main(program: Program) -> None:
    """Do what the command line asks for, and print the answer as JSON."""
    match sys.argv[1:]:
        case ["version"]:
            print(json.dumps(version(program.distribution)))
        case ["install"]:
            asyncio.run(program.install())
        case ["enqueue", jobs]:
            asyncio.run(program.enqueue(int(jobs)))
        case ["work"]:
            program.work()
        case ["store"]:
            print(json.dumps(asyncio.run(program.store())))
        case _:
            sys.exit("version | install | enqueue N | work | store")
