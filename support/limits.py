"""Limits for processes, by the kernel (cgroup v1): of their memory, whose breaker is killed, of
their number, beyond which none is born, and of their processor time, beyond which they wait."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from support.processes import send, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOT = Path("/sys/fs/cgroup")
_WITHIN = 5.0
_ENTER = 'echo $$ > "$0"/cgroup.procs && exec "$@"'
_numbers = itertools.count(1)


class _Limit:
    """One group of processes, which share what they may have. Remove it when they are gone."""

    root: ClassVar[Path]
    setting: ClassVar[str]

    def __init__(self, limit: int) -> None:
        self.name = f"tenure-{os.getpid()}-{next(_numbers)}"
        self.path = self.root / self.name
        self.path.mkdir()
        (self.path / self.setting).write_text(str(limit))

    @classmethod
    def available(cls) -> bool:
        """Whether such groups can be made here."""
        return os.access(cls.root / "cgroup.procs", os.W_OK)

    @property
    def command(self) -> tuple[str, ...]:
        """What to write before a command, to run it and all that it starts in the group."""
        return ("/bin/sh", "-c", _ENTER, str(self.path))

    @property
    def members(self) -> list[int]:
        """The ids of the processes in it."""
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]

    def remove(self) -> None:
        """Remove the group; its processes have ended, or are about to."""
        if not wait_for(self._removed, _WITHIN):
            raise OSError(f"{self.path} cannot be removed; it holds {self.members}")

    def _removed(self) -> bool:
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


class MemoryLimit(_Limit):
    """Limit the processes to this many bytes together; the kernel kills one that exceeds them."""

    root = _ROOT / "memory"
    setting = "memory.limit_in_bytes"

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed for lack of memory here."""
        words = (self.path / "memory.oom_control").read_text().split()
        return int(words[words.index("oom_kill") + 1])

    @property
    def most(self) -> int:
        """The most bytes that were used so far."""
        return int((self.path / "memory.max_usage_in_bytes").read_text())


class ProcessLimit(_Limit):
    """Limit processes and threads to this many together; a fork beyond that fails."""

    root = _ROOT / "pids"
    setting = "pids.max"

    def remove(self) -> None:
        """End the processes in it, and remove the group."""
        (self.path / self.setting).write_text("0")
        for pid in self.members:
            send(pid, signal.SIGKILL)
        super().remove()


class ProcessorLimit(_Limit):
    """Limit the processes to this many microseconds of every tenth of a second together."""

    root = _ROOT / "cpu"
    setting = "cpu.cfs_quota_us"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def take(self, pids: Iterable[int]) -> None:
        """Put processes into it, with all their threads; who is born of them is in it too."""
        _move(pids, self.path)

    @property
    def waits(self) -> int:
        """Return in how many tenths of a second a process had to wait so far."""
        words = (self.path / "cpu.stat").read_text().split()
        return int(words[words.index("nr_throttled") + 1])

    def remove(self) -> None:
        """Let everybody have what the others have, and remove the group."""
        if self.path.exists():
            super().remove()

    def _removed(self) -> bool:
        # Who was born while others were moved is moved in the next turn.
        _move(self.members, self.root)
        return super()._removed()


def _move(pids: Iterable[int], group: Path) -> None:
    """Into this group, but for those that are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
