"""What the tests of shell work do again and again: configure it, run commands, and look for what
they left behind."""

from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenure import Tenure
from tests.worker.acts import attempts, end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from support.store import Database
    from tenure._model.attempt import AttemptRow
    from tenure._model.job import JobRow

PYTHON = sys.executable
# Root must say so.
USER = pwd.getpwuid(os.geteuid()).pw_name


def configure(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Give the worker this `[kinds.shell]`; Python is allowed."""
    table = {"allow": [PYTHON], "user": USER, **settings}
    monkeypatch.setenv("TENURE_KINDS_SHELL", json.dumps(table))


async def run(db: Database, argv: Sequence[str], **arguments: Any) -> tuple[JobRow, AttemptRow]:
    """Run one command in this process, once; its job and its attempt."""
    options: dict[str, Any] = {"max_attempts": 1, **arguments.pop("using", {})}
    app = Tenure(db.url)
    try:
        async with app.run(kinds=["shell"]):
            handle = await app.shell(argv, **arguments).using(**options).aenqueue()
            job = await end(handle, 30)
        [attempt] = await attempts(app, handle)
    finally:
        app.close()
        await app.aclose()
    return job, attempt


async def python(db: Database, code: str, **arguments: Any) -> tuple[JobRow, AttemptRow]:
    """Run Python code as a command."""
    return await run(db, [PYTHON, "-I", "-c", code], **arguments)


def marked(variables: Mapping[str, str]) -> list[int]:
    """The witness: every process of this machine with these variables in its environment."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


DAEMON = """
import os, time, signal
def daemon(work):
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for fd in range(3):
        os.close(fd)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    work()
"""
# A daemon and its parent, both of which ignore SIGTERM and write their fence as long as they live;
# in the next attempt, for a moment. By themselves they end after half a minute.
WRITES = (
    DAEMON
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
path, fence = os.environ["MARK"], os.environ["TENURE_FENCE"]
times = 10 if os.path.exists(path) else 3000
def work():
    for _ in range(times):
        with open(path, "a") as file:
            file.write(f"{fence} {time.time()}\\n")
        time.sleep(0.01)
daemon(work)
work()
"""
)


def writes(file: Path) -> dict[int, list[float]]:
    """When each fence wrote to a file."""
    found: dict[int, list[float]] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        fence, at = line.split()
        found.setdefault(int(fence), []).append(float(at))
    return found
