"""A limit of memory for processes, by the kernel (cgroup v1): who goes beyond it is killed."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from support.processes import wait_for

ROOT = Path("/sys/fs/cgroup/memory")
_WITHIN = 5.0
_ENTER = 'echo $$ > "$0"/cgroup.procs && exec "$@"'
_numbers = itertools.count(1)


def available() -> bool:
    """Whether groups can be made here."""
    return os.access(ROOT / "cgroup.procs", os.W_OK)


class MemoryLimit:
    """One group of processes that may have so many bytes together. Remove it when they are gone."""

    def __init__(self, limit: int) -> None:
        self.name = f"tenure-{os.getpid()}-{next(_numbers)}"
        self.path = ROOT / self.name
        self.path.mkdir()
        (self.path / "memory.limit_in_bytes").write_text(str(limit))

    @property
    def command(self) -> tuple[str, ...]:
        """What to write before a command, to run it and all that it starts in the group."""
        return ("/bin/sh", "-c", _ENTER, str(self.path))

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed for lack of memory here."""
        words = (self.path / "memory.oom_control").read_text().split()
        return int(words[words.index("oom_kill") + 1])

    @property
    def most(self) -> int:
        """The most bytes that were used so far."""
        return int((self.path / "memory.max_usage_in_bytes").read_text())

    def remove(self) -> None:
        """Remove the group; its processes have ended, or are about to."""
        wait_for(self._removed, _WITHIN)

    def _removed(self) -> bool:
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
