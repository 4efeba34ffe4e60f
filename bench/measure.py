"""How things are measured: processor time of one database backend, which holds still on a
shared machine where wall time does not."""

from __future__ import annotations

import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection


def backend_seconds(pid: int) -> float:
    """The processor time that a process has used so far, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@dataclass
class Meter:
    """Processor and wall time of what ran inside, by label."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def time(self, connection: Connection[Any], label: str) -> Iterator[None]:
        pid = connection.info.backend_pid
        cpu, wall = backend_seconds(pid), time.perf_counter()
        yield
        self.cpu[label] = self.cpu.get(label, 0.0) + backend_seconds(pid) - cpu
        self.wall[label] = self.wall.get(label, 0.0) + time.perf_counter() - wall
        self.calls[label] = self.calls.get(label, 0) + 1


@dataclass(frozen=True)
class Spread:
    """A median with what lay around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:7.1f} ({self.low:.1f}–{self.high:.1f})"
