"""The leases that a child holds, in memory that it shares with its parent.

If the child dies or stalls, the board shows the parent which leases the child held, which jobs had
started, and when each handler had to stop.
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

# The heartbeats of the event loop and the service thread, and the number of jobs run. The places
# for leases follow.
_HEADER = struct.Struct("=ddd")
# Job, token, lease length, the time by which the handler must have ended, the retry delay if it
# times out, when it started or ended, attempt, maximum attempts, phase.
# A place is written while its phase is FREE, so it is complete before it counts.
# Each later change is one aligned store. `pack_into` zeroes the memory before it writes, and a
# parent reading in between would see a deadline long past.
_PLACE = struct.Struct("=qqddddhhi")
_LOOP_HEARTBEAT, _SERVICE_HEARTBEAT, _JOBS = 0, 1, 2
_FIRST_DOUBLE = _HEADER.size // 8
_STRIDE = _PLACE.size // 8
_STOP_AT, _RETRY_AFTER, _SINCE = _FIRST_DOUBLE + 3, _FIRST_DOUBLE + 4, _FIRST_DOUBLE + 5
_PHASE, _PHASE_STRIDE = _HEADER.size // 4 + 13, _PLACE.size // 4
NEVER = math.inf


class Phase(IntEnum):
    """A lease's progress. TIMED_OUT means the handler should have ended but is still running."""

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
    # For TIMED_OUT: the parent doesn't know the task's backoff.
    retry_after: timedelta = timedelta(0)
    # When its phase became STARTED, IN_PROCESS or ENDED; 0 before that.
    since: float = 0.0


class BoardSummary(NamedTuple):
    # The earliest time by which a running handler must have ended.
    earliest: float = NEVER
    # Whether a handler timed out and is still running.
    stuck: bool = False
    # The shortest lease in any phase.
    shortest: float = NEVER


class BoardHeartbeats(NamedTuple):
    """The last heartbeats of a child's event loop and service thread, or 0 before the first."""

    loop: float
    service: float


class LeaseBoard:
    """A fixed number of lease entries, written by the child and read by the parent."""

    def __init__(self, fd: int, *, places: int) -> None:
        self.lock: threading.Lock = threading.Lock()
        self._memory = mmap.mmap(fd, _HEADER.size + places * _PLACE.size)
        self._doubles = memoryview(self._memory).cast("d")
        self._ints = memoryview(self._memory).cast("i")
        self._free = list(range(places - 1, -1, -1))

    @staticmethod
    def make(*, places: int) -> int:
        fd = os.memfd_create("tenure-board")
        os.ftruncate(fd, _HEADER.size + places * _PLACE.size)
        return fd

    @property
    def capacity(self) -> int:
        return len(self._free)

    def put(self, lease: Lease, *, stop_at: float, attempt: int, limit: int) -> int:
        """Add a lease that hasn't started; return its place."""
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
        # Last, so a half-written entry is never read.
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.UNSTARTED
        return place

    def mark(self, place: int, phase: Phase) -> None:
        self._ints[place * _PHASE_STRIDE + _PHASE] = phase

    def begin(self, place: int, phase: Phase, now: float) -> None:
        # Write the time before the phase, so that a phase is never read with an older time.
        self._doubles[place * _STRIDE + _SINCE] = now
        self._ints[place * _PHASE_STRIDE + _PHASE] = phase

    def end(self, place: int, now: float, *, begun: bool) -> None:
        self._doubles[place * _STRIDE + _SINCE] = now
        if begun:
            self._doubles[_JOBS] += 1
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.ENDED

    def time_out(self, place: int, retry_after: timedelta) -> None:
        self._doubles[place * _STRIDE + _RETRY_AFTER] = retry_after.total_seconds()
        self.mark(place, Phase.TIMED_OUT)

    def extend(self, place: int, stop_at: float) -> None:
        self._doubles[place * _STRIDE + _STOP_AT] = stop_at

    def clear(self, place: int) -> None:
        self._ints[place * _PHASE_STRIDE + _PHASE] = Phase.FREE
        self._free.append(place)

    def entries(self, worker: WorkerId) -> Iterator[BoardEntry]:
        for place in _PLACE.iter_unpack(self._memory[_HEADER.size :]):
            job, token, ttl, stop_at, retry_after, since, attempt, limit, phase = place
            if phase != Phase.FREE:
                lease = Lease(JobId(job), Token(token), worker, timedelta(seconds=ttl))
                wait = timedelta(seconds=retry_after)
                yield BoardEntry(lease, Phase(phase), stop_at, attempt, limit, wait, since)

    def summary(self) -> BoardSummary:
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
        return int(self._doubles[_JOBS])

    @property
    def heartbeats(self) -> BoardHeartbeats:
        return BoardHeartbeats(self._doubles[_LOOP_HEARTBEAT], self._doubles[_SERVICE_HEARTBEAT])

    def close(self) -> None:
        self._doubles.release()
        self._ints.release()
        self._memory.close()
