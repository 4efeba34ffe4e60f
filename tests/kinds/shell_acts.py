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
from tenure.config import DEFAULTS
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
# A lease of three seconds.
FAST = DEFAULTS.scaled(0.1)


def configure(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Give the worker this `[kinds.shell]`; Python is allowed."""
    table = {"allow": [PYTHON], "user": USER, **settings}
    monkeypatch.setenv("TENURE_KINDS_SHELL", json.dumps(table))


async def run(db: Database, argv: Sequence[str], **arguments: Any) -> tuple[JobRow, AttemptRow]:
    """Run one command in this process, once; its job and its attempt."""
    options: dict[str, Any] = {"max_attempts": 1, **arguments.pop("using", {})}
    app = Tenure(db.url, defaults=FAST)
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
