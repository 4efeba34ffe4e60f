"""Freezes processes by the kernel's freezer (cgroup v1), and thaws them."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from support.processes import alive, children, wait_for

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path("/sys/fs/cgroup/freezer")
_WITHIN = 5.0
_numbers = itertools.count(1)


class FreezerError(Exception):
    """The kernel did not do as asked."""


def available() -> bool:
    """Whether groups can be made here."""
    return os.access(ROOT / "cgroup.procs", os.W_OK)


class Freezer:
    """One group of processes, from its first member to `thaw`."""

    def __init__(self) -> None:
        self.name = f"tenure-{os.getpid()}-{next(_numbers)}"
        self._path = ROOT / self.name
        self._path.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.thaw()

    def freeze(self, leader: int) -> list[int]:
        """Freeze a process and all below it; answers with their ids."""
        self._gather(leader)
        (self._path / "freezer.state").write_text("FROZEN")
        if not wait_for(lambda: self.state == "FROZEN", _WITHIN):
            raise FreezerError(f"{self._path} does not freeze; it is {self.state}")
        return self._members()

    @property
    def state(self) -> str:
        """FROZEN, FREEZING or THAWED."""
        return (self._path / "freezer.state").read_text().strip()

    def thaw(self) -> None:
        """Thaw all at once, in the root group, and remove this one."""
        if not self._path.exists():
            return
        (self._path / "freezer.state").write_text("THAWED")
        for _ in range(100):
            members = self._members()
            if not members:
                break
            for pid in members:
                _move(pid, ROOT)
        if not wait_for(self._removed, _WITHIN):
            raise FreezerError(f"{self._path} cannot be removed; it holds {self._members()}")

    def _gather(self, leader: int) -> None:
        """Take in the whole family; who is born in the group is in it."""
        _move(leader, self._path)
        seen = {leader}
        waiting = [leader]
        while waiting:
            for child in children(waiting.pop()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
                    _move(child, self._path)

    def _members(self) -> list[int]:
        return [int(pid) for pid in (self._path / "cgroup.procs").read_text().split()]

    def _removed(self) -> bool:
        for pid in filter(alive, self._members()):
            _move(pid, ROOT)
        try:
            self._path.rmdir()
        except OSError:
            return False
        return True


def _move(pid: int, group: Path) -> None:
    """Into this group, unless it is gone."""
    with contextlib.suppress(ProcessLookupError):
        (group / "cgroup.procs").write_text(str(pid))
