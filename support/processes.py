"""Looks at processes and ends them, by id. Starts none."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(request: signal.Signals = signal.SIGINT) -> Callable[[], None]:
    """Return a `preexec_fn` by which the child gets this signal when its parent ends.

    The kernel counts the thread that forked as the parent. It forgets the wish at a change
    of user, which subprocess makes before it calls a `preexec_fn`.
    """
    parent = os.getpid()

    def before_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, request, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Answer whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _stat(pid: int) -> tuple[str, int] | None:
    """Return a process' state letter and its parent, or None when it is gone."""
    try:
        # The name, in parentheses, may hold spaces; what follows it does not.
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def alive(pid: int) -> bool:
    """Answer whether the process runs; one that has ended but is not reaped does not."""
    stat = _stat(pid)
    return stat is not None and stat[0] not in "ZX"


def stopped(pid: int) -> bool:
    """Answer whether the process is there, and stands still by a SIGSTOP."""
    stat = _stat(pid)
    return stat is not None and stat[0] in "Tt"


def environment(pid: int) -> dict[str, str]:
    """Return what a process was started with; nothing when it is gone."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def children(parent: int) -> list[int]:
    """Return the ids of a process' direct children."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if (stat := _stat(pid)) and stat[1] == parent]


def family(root: int) -> list[int]:
    """Return the ids of a process and of all that it started and that is still there."""
    return [root, *(pid for child in children(root) for pid in family(child))]


def send(pid: int, request: signal.Signals) -> None:
    """Send a signal to a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, request)
