"""The append-only history: what each handler says of itself, outside the database."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Where a handler is. `inside` and `written` are inside the open transaction, before and after
# its effect; `left` is after its COMMIT was answered; `refused`: it was told LeaseLost.
PHASES = ("begun", "inside", "written", "left")
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Line:
    """One word of a handler: how far it is, in whose name, in which process under which."""

    phase: str
    job_id: int
    token: int
    pid: int
    parent: int

    def of(self, child: int) -> bool:
        """Whether it comes from this child, or from a handler's process under it."""
        return child in (self.pid, self.parent)


class Pen:
    """Writes lines; each is one `write` to a file opened for appending, so none is torn."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, phase: str, job_id: int, token: int) -> None:
        """Say one thing."""
        line = f"{phase} {job_id} {token} {os.getpid()} {os.getppid()}\n"
        os.write(self._fd, line.encode())


class History:
    """Reads what the handlers wrote, as they write it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        path.touch()
        self._file = path.open("rb")
        self._torn = b""

    def new(self) -> list[Line]:
        """The lines that came since the last call."""
        *whole, self._torn = (self._torn + self._file.read()).split(b"\n")
        lines = []
        for text in whole:
            phase, job_id, token, pid, parent = text.decode().split()
            lines.append(Line(phase, int(job_id), int(token), int(pid), int(parent)))
        self.lines += lines
        return lines

    def periods(self, phase: str) -> list[tuple[int, int]]:
        """The running periods, as (job, token), of which handlers said this; with repeats."""
        return [(line.job_id, line.token) for line in self.lines if line.phase == phase]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
