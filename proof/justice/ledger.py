"""The ledger: what each handler did and when, outside the database on trial.

Each mark is one `write` to a file opened for appending. Nothing is locked, so that a handler that
is killed or stopped anywhere cannot hold up the next mark.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# `dying` is written just before a handler kills its process; `failed` before it raises.
START, BEAT, END, FAILED, DYING = "start", "beat", "end", "failed", "dying"


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of a handler. `at` is the machine's clock, which is the database's too."""

    kind: str
    job: int
    token: int
    attempt: int
    pid: int
    parent: int
    at: float

    @property
    def period(self) -> tuple[int, int]:
        """The running period it belongs to."""
        return self.job, self.token


class Pen:
    """Writes marks."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, kind: str, job: int, token: int, attempt: int) -> None:
        """Write one mark."""
        at = time.time()
        line = f"{kind} {job} {token} {attempt} {os.getpid()} {os.getppid()} {at:.4f}\n"
        os.write(self._fd, line.encode())


class Ledger:
    """Reads marks while handlers write them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marks: list[Mark] = []
        path.touch()
        self._file = path.open("rb")
        self._partial = b""

    def read(self) -> list[Mark]:
        """Return the marks written since the last call."""
        *whole, self._partial = (self._partial + self._file.read()).split(b"\n")
        marks = [_parse(line) for line in whole]
        self.marks += marks
        return marks

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _parse(line: bytes) -> Mark:
    kind, job, token, attempt, pid, parent, at = line.decode().split()
    return Mark(kind, int(job), int(token), int(attempt), int(pid), int(parent), float(at))
