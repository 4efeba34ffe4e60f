"""How long jobs waited, in milliseconds: the usual points of a list of waits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

POINTS = (0.50, 0.95, 0.99)


class Stalling(Protocol):
    """What knows when the machine stood still."""

    def during(self, begin: float, end: float) -> bool: ...


@dataclass(frozen=True)
class Waits:
    """A number of jobs, and the median, 95th and 99th percentile and maximum of their waits."""

    count: int
    p50: float
    p95: float
    p99: float
    worst: float

    @classmethod
    def of(cls, spans: Iterable[tuple[float, float]]) -> Waits:
        """The points of spans from sent to begun, in seconds; at least one is needed."""
        waits = sorted(end - begin for begin, end in spans)
        if not waits:
            raise AssertionError("nothing waited: no job was both sent and begun")
        p50, p95, p99 = (waits[int(len(waits) * point)] * 1e3 for point in POINTS)
        return cls(len(waits), p50, p95, p99, waits[-1] * 1e3)

    def __str__(self) -> str:
        return (
            f"p50 {self.p50:.1f} p95 {self.p95:.1f} p99 {self.p99:.1f} worst {self.worst:.1f} ms "
            f"({self.count:,})"
        )

    def figures(self) -> dict[str, float]:
        """The same for programs."""
        return asdict(self)


def beside(spans: Iterable[tuple[float, float]], stalls: Stalling) -> Waits | None:
    """Return the waits during which the machine never stood still; None without any."""
    calm = [span for span in spans if not stalls.during(*span)]
    return Waits.of(calm) if calm else None
