"""Clocks that are wrong: of workers, and of the server."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

import psycopg

from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import AtAPost, Nemesis
from support.clocks import Clock
from support.processes import wait_for

if TYPE_CHECKING:
    from proof.faults.harness import Bed

_HOUR = 3600.0
_TEN_MINUTES = 600.0
_NEAR = 60.0
_UP_WITHIN = 30.0
# Processes look at the offset about once a second.
_SEEN_WITHIN = 5.0


class WorkerClock(AtAPost):
    """A worker is replaced by one whose clock is an hour off, or ten times too fast."""

    name = "worker with a wrong clock"
    # For how long it is to be at work, and since when it is.
    _stays: float
    _since: float | None

    def harm(self, bed: Bed) -> float | None:
        clock = bed.keep(Clock(bed.rng.choice((-_HOUR, 0.0, _HOUR))))
        if not clock.offset:
            clock.drift(10)
        self._since = None
        self._stays = bed.rng.uniform(LEASE, 3 * LEASE)
        self.post.environment = clock.environment
        self.post.dismiss(signal.SIGTERM)
        return _UP_WITHIN + self._stays

    def look(self, bed: Bed) -> bool:
        if self._since is not None:
            return time.monotonic() > self._since + self._stays
        wrong = self.post.environment.items()
        if any(wrong <= one.items() for one in bed.at_work(self.post)):
            self._since = time.monotonic()
        return False

    def restore(self, bed: Bed) -> int:
        del bed
        self.post.environment = {}
        self.post.dismiss(signal.SIGTERM)
        return int(self._since is not None)


class ServerClock(Nemesis):
    """The server's clock is stepped ten minutes forward, or back, and later to the true time."""

    name = "server's clock stepped by ten minutes"
    _stepped: bool

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def strike(self, bed: Bed) -> float | None:
        self._stepped = False
        self._clock.set(bed.rng.choice((-_TEN_MINUTES, _TEN_MINUTES)))
        return bed.rng.uniform(LEASE, 2 * LEASE)

    def look(self, bed: Bed) -> bool:
        self._stepped = self._stepped or self._shows(bed)
        return False

    def relieve(self, bed: Bed) -> int:
        self._clock.set(0.0)
        return self._stepped + (self._stepped and wait_for(lambda: self._shows(bed), _SEEN_WITHIN))

    def _shows(self, bed: Bed) -> bool:
        """Whether the server itself tells the time that it was given."""
        with contextlib.suppress(psycopg.OperationalError):
            [(at,)] = bed.rows("SELECT extract(epoch FROM clock_timestamp())::float8")
            return bool(abs(at - time.time() - self._clock.offset) < _NEAR)
        return False

    def finish(self, bed: Bed) -> None:
        """What was granted or put off while it was ahead has its time now, not in ten minutes."""
        del bed
        self._clock.set(_TEN_MINUTES)
