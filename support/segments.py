"""The shared memory of a server that was killed and will not start again to remove it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_IPC_RMID = 0
_SEGMENT_LINE = 6
_libc = ctypes.CDLL(None, use_errno=True)

# Where the rest of it is kept in the server's own directory, and goes with that.
IN_DIRECTORY = {"dynamic_shared_memory_type": "mmap"}


def remove(data: Path) -> None:
    """Remove the segment that the lock file of a dead server names; a clean end leaves no file."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        _key, segment = lines[_SEGMENT_LINE].split()
    except (OSError, IndexError, ValueError):
        return
    _libc.shmctl(int(segment), _IPC_RMID, None)
