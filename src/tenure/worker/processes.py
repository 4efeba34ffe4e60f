"""What the processes of a worker have in common: they die together."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_apart = False


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent is gone, however that came.

    A child without its parent would run on unwatched. One whose parent was gone before this
    was asked for ends here.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def be_apart() -> None:
    """Note that this process is a handler's own."""
    global _apart  # noqa: PLW0603 - a process is one thing or the other
    _apart = True


def is_apart() -> bool:
    """Whether this process is a handler's own: it is killed as soon as nobody needs it, so that
    what must get away has to go with each job."""
    return _apart


def kill_session(leader: int) -> None:
    """End a session: its leader's group at once, then what is in groups of its own (processes of
    handlers, and the programs that they started)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in _members(leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _members(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, in parentheses: state, parent, group, session.
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                found.append(int(entry.parent.name))
    return found
