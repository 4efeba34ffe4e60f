"""Process groups as the kernel tells of them."""

import contextlib
import os
import signal
from pathlib import Path


def groups(session: int) -> set[int]:
    """The groups that there are in a session."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, in parentheses: state, parent, group, session.
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                found.add(int(fields[2]))
    return found


def kill(group: int) -> None:
    """End a group as one, so that none of it can fork meanwhile. What is another user's stays."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
