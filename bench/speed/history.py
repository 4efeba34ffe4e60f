"""What a run's jobs went through: when each was sent and each of its starts. Reads no database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.speed.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CLAIMING = 1.0  # The server may still grant what a worker asked for in its last moment.


@dataclass(frozen=True)
class Loss:
    """A running period whose worker was gone: of which job, from when, and when it was noticed."""

    number: int
    begun_at: float
    ended_at: float


@dataclass
class History:
    """When each number was sent, its first start, and all starts of those with several."""

    sent: Mapping[int, float]
    first: dict[int, float] = field(default_factory=dict)
    again: dict[int, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, sent: Mapping[int, float], stamps: Iterable[tuple[int, float]]) -> History:
        history = cls(sent)
        for number, at in stamps:
            if number in history.first:
                history.again.setdefault(number, []).append(at)
                history.first[number] = min(at, history.first[number])
            else:
                history.first[number] = at
        return history

    def spans(self) -> Iterator[tuple[int, tuple[float, float]]]:
        """From sent to first start, of each."""
        for number, at in self.sent.items():
            yield number, (at, self.first[number])

    def over(self, seconds: float) -> dict[int, tuple[float, float]]:
        """Those that waited longer."""
        return {number: (b, e) for number, (b, e) in self.spans() if e - b > seconds}

    def windows(self, began: float, length: float, count: int) -> list[Waits]:
        """Waits of those that were sent in each window; the last takes what is left."""
        spans: list[list[tuple[float, float]]] = [[] for _ in range(count)]
        for _, (begin, end) in self.spans():
            spans[max(0, min(int((begin - began) // length), count - 1))].append((begin, end))
        return [Waits.of(window) for window in spans]

    def returns(self, losses: Iterable[Loss], kills: Sequence[float]) -> tuple[list[float], int]:
        """Of each loss, the time from the kill in it to the next start; and how many losses had
        none in them."""
        times, strange = [], 0
        for loss in losses:
            within = (k for k in kills if loss.begun_at - CLAIMING <= k <= loss.ended_at)
            kill = max(within, default=None)
            if kill is None:
                strange += 1
                continue
            starts = [self.first[loss.number], *self.again.get(loss.number, [])]
            times.append(min(at for at in starts if at > kill) - kill)
        return times, strange
