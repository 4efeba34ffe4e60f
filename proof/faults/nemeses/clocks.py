"""Clocks that are wrong: of workers, and of the server."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import AtAPost, Nemesis
from support.clocks import Clock
from support.processes import send

if TYPE_CHECKING:
    from proof.faults.bed import Bed

_HOUR = 3600.0
_TEN_MINUTES = 600.0


class WorkerClock(AtAPost):
    """A worker is replaced by one whose clock is an hour off, or ten times too fast."""

    name = "worker with a wrong clock"

    def harm(self, bed: Bed) -> float | None:
        clock = bed.keep(Clock(bed.rng.choice((-_HOUR, 0.0, _HOUR))))
        if not clock.offset:
            clock.drift(10)
        self.post.environment = clock.environment
        send(self.post.parent, signal.SIGTERM)
        return bed.rng.uniform(3 * LEASE, 5 * LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        self.post.environment = {}
        send(self.post.parent, signal.SIGTERM)
        return 1


class ServerClock(Nemesis):
    """The server's clock is stepped ten minutes forward, or back, and later to the true time."""

    name = "server's clock stepped by ten minutes"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def strike(self, bed: Bed) -> float | None:
        self._clock.set(bed.rng.choice((-_TEN_MINUTES, _TEN_MINUTES)))
        return bed.rng.uniform(LEASE, 2 * LEASE)

    def relieve(self, bed: Bed) -> int:
        del bed
        self._clock.set(0.0)
        return 2

    def finish(self, bed: Bed) -> None:
        """What was granted or put off while it was ahead has its time now, not in ten minutes."""
        del bed
        self._clock.set(_TEN_MINUTES)
