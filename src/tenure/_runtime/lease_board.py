"""The leases a child holds, in memory that it shares with its parent.

When the child dies, or does not get to run, the board is all that the parent knows of it:
which leases it held, which had started, and by when each must have been stopped.
"""

import math
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import NamedTuple

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.lease import Lease

# The heartbeats of the event loop and the service thread; how many jobs have run. Then the places.
_HEADER = struct.Struct("=ddd")
# Job, token, length of the lease, the instant by which it must have ended, how long its job waits
# if that is its end, the instant at which it started or ended, the attempt and its limit, phase.
# A place is written while its phase is FREE, so that it is whole before it counts.
# What changes later is stored as one aligned word: `pack_into` zeroes before it writes, and a
# parent that looked just then would see a deadline long past.
_PLACE = struct.Struct("=qqddddhhi")
_LOOP_HEARTBEAT, _SERVICE_HEARTBEAT, _JOBS = 0, 1, 2
_FIRST_DOUBLE = _HEADER.size // 8
_STRIDE = _PLACE.size // 8
_STOP_AT, _RETRY_AFTER, _SINCE = _FIRST_DOUBLE + 3, _FIRST_DOUBLE + 4, _FIRST_DOUBLE + 5
_PHASE, _PHASE_STRIDE = _HEADER.size // 4 + 13, _PLACE.size // 4
NEVER = math.inf


class Phase(IntEnum):
    """How far a lease has come. What is `apart` runs in a process of its own, for which it was
    `waiting`; what is `timed out` should have ended, and has not."""

    FREE = 0
    UNSTARTED = 1
    STARTED = 2
    ENDED = 3
    TIMED_OUT = 4
    IN_PROCESS = 5
    AWAITING_PROCESS = 6


ACTIVE_PHASES = frozenset(
    {Phase.STARTED, Phase.IN_PROCESS, Phase.TIMED_OUT, Phase.AWAITING_PROCESS}
)
NOT_STARTED_PHASES = frozenset({Phase.UNSTARTED, Phase.AWAITING_PROCESS})
_RUNNING = frozenset(int(phase) for phase in ACTIVE_PHASES)


@dataclass(frozen=True, slots=True)
class BoardEntry:
    lease: Lease
    phase: Phase
    stop_at: float
    attempt: int
    limit: int
    # For one that is timed out: the child knows the task's backoff, and the parent does not.
    retry_after: timedelta = timedelta(0)
    # When its phase last became STARTED, APART or ENDED; 0 before that.
    since: float = 0.0


class BoardSummary(NamedTuple):
    """What a parent needs to know of a child several times per second."""

    # The instant by which the first handler that still runs must have ended.
    earliest: float = NEVER
    # Whether a handler is out of time and has not ended.
    stuck: bool = False
    # The shortest lease that is held, in whichever phase.
    shortest: float = NEVER


class BoardHeartbeats(NamedTuple):
    """When the event loop and the service thread of a child last moved; 0 before their first."""

    loop: float
    service: float


class LeaseBoard:
    """A fixed number of places for leases. Written by the child, read by the parent."""

    def __init__(self, fd: int, *, places: int) -> None:
        self.lock: threading.Lock = threading.Lock()
        self._memory = mmap.mmap(fd, _HEADER.size + places * _PLACE.size)
        self._doubles = memoryview(self._memory).cast("d")
        self._ints = memoryview(self._memory).cast("i")
        self._free = list(range(places - 1, -1, -1))

    @staticmethod
    def make(*, places: int) -> int:
        """The descriptor of new shared memory, to be inherited by the child."""
        fd = os.memfd_create("tenure-board")
        os.ftruncate(fd, _HEADER.size + places * _PLACE.size)
        return fd

    @property
    def capacity(self) -> int:
        return len(self._free)

    def put(self, lease: Lease, *, stop_at: float, attempt: int, limit: int) -> int:
        """Note a lease that has not started; answers with its place."""
        place = self._free.pop()
        at = _HEADER.size + place * _PLACE.size
        ttl = lease.ttl.total_seconds()
        _PLACE.pack_into(
            self._memory,
            at,
            lease.job_id,
            lease.token,
            ttl,
            stop_at,
            0.0,
            0.0,
            attempt,
            limit,
            Phase.FREE,
        )
        # Last, so that no entry is read half written.
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.UNSTARTED
        return place

    def mark(self, place: int, phase: Phase) -> None:
        """Note how far the lease has come."""
        self._ints[place * _PHASE_STRIDE + _PHASE] = phase

    def begin(self, place: int, phase: Phase, now: float) -> None:
        """Note that its handler begins now, in this phase."""
        # Before the phase, so that a dated phase is never read with an older date.
        self._doubles[place * _STRIDE + _SINCE] = now
        self._ints[place * _PHASE_STRIDE + _PHASE] = phase

    def end(self, place: int, now: float, *, begun: bool) -> None:
        """Note that it has ended now, and count it if its handler had begun."""
        self._doubles[place * _STRIDE + _SINCE] = now
        if begun:
            self._doubles[_JOBS] += 1
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.ENDED

    def time_out(self, place: int, retry_after: timedelta) -> None:
        """Note that it should have ended and has not, and how long its job is to wait then."""
        self._doubles[place * _STRIDE + _RETRY_AFTER] = retry_after.total_seconds()
        self.mark(place, Phase.TIMED_OUT)

    def extend(self, place: int, stop_at: float) -> None:
        """Note the new instant by which the lease must have ended."""
        self._doubles[place * _STRIDE + _STOP_AT] = stop_at

    def clear(self, place: int) -> None:
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.FREE
        self._free.append(place)

    def entries(self, worker: WorkerId) -> Iterator[BoardEntry]:
        """The leases on the board, as the parent reads them."""
        for place in _PLACE.iter_unpack(self._memory[_HEADER.size :]):
            job, token, ttl, stop_at, retry_after, since, attempt, limit, phase = place
            if phase != Phase.FREE:
                lease = Lease(JobId(job), Token(token), worker, timedelta(seconds=ttl))
                wait = timedelta(seconds=retry_after)
                yield BoardEntry(lease, Phase(phase), stop_at, attempt, limit, wait, since)

    def summary(self) -> BoardSummary:
        """Read all places once: the parent does so several times per second."""
        earliest, stuck, shortest = NEVER, False, NEVER
        for place in _PLACE.iter_unpack(self._memory[_HEADER.size :]):
            phase = place[8]
            if phase == Phase.FREE:
                continue
            shortest = min(shortest, place[2])
            if phase in _RUNNING:
                earliest = min(earliest, place[3])
                stuck = stuck or phase == Phase.TIMED_OUT
        return BoardSummary(earliest, stuck, shortest)

    def record_loop_heartbeat(self, now: float) -> None:
        self._doubles[_LOOP_HEARTBEAT] = now

    def record_service_heartbeat(self, now: float) -> None:
        self._doubles[_SERVICE_HEARTBEAT] = now

    @property
    def jobs(self) -> int:
        """How many jobs have begun and ended here."""
        return int(self._doubles[_JOBS])

    @property
    def heartbeats(self) -> BoardHeartbeats:
        """When the child's two threads last moved."""
        return BoardHeartbeats(self._doubles[_LOOP_HEARTBEAT], self._doubles[_SERVICE_HEARTBEAT])

    def close(self) -> None:
        self._doubles.release()
        self._ints.release()
        self._memory.close()
