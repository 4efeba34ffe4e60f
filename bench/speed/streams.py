"""A stream of jobs through a worker that runs, and how long each of them waited."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.speed.producing import produce, produced
from bench.workers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.speed.contender import Contender, Place, Running

WARM = ("callers", 50, 1, 0, 0, 9)
_SPARE = 60.0


@contextmanager
def warm(contender: Contender, place: Place, children: int = 1) -> Iterator[Running]:
    """A worker that has run some jobs already."""
    with contender.work(place, children) as running:
        stream(place, *WARM)
        yield running


def stream(place: Place, *words: object, seconds: float = 1.0) -> dict[int, tuple[float, float]]:
    """When each job of a producer was sent and when it began; all must have."""
    sent = produced(place, produce(place, *words), seconds + _SPARE)
    until(lambda: len(place.stamps()) >= len(sent), _SPARE)
    began = place.stamps()
    return {number: (at, began[number]) for number, at in sent.items()}
