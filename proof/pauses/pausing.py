"""Stops a worker that holds hundreds of leases for longer than they last, and resumes it."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proof.crash.jobs import LEASE
from support.freezer import Freezer
from support.processes import children, send

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from proof.crash.harness import Bed

TOGETHER = "SIGSTOP of parent and child"
CHILD = "SIGSTOP of a child"
FREEZER = "a worker frozen"
PROGRAM = "SIGSTOP of a program with a worker inside"
KINDS = (TOGETHER, FREEZER, CHILD, PROGRAM)
_SLEEP = (1.3, 2.0)
# Mostly the sleeper wakes first: for a moment nothing keeps it from offering its results.
_PARENT_LATER = (-0.4, 1.5)
# What was on its way to the server when the worker was stopped has been answered by then.
_SETTLED = 0.1
_HELD = """
SELECT j.id, j.token, j.lease_expires_at
FROM tenure.job AS j
JOIN tenure.worker AS w ON w.id = j.claimed_by
WHERE j.state = 'running' AND w.pid = ANY (%(pids)s)
"""

Period = tuple[int, int]


@dataclass(slots=True)
class Pause:
    """One worker that is stopped: which leases it held, when each ended, and when it continued.
    `pids` are its processes that hold leases, and those below."""

    leader: int
    kind: str
    began: float
    wake_at: float
    pids: list[int]
    freezer: Freezer | None = None
    ends: dict[Period, datetime] = field(default_factory=dict)
    inside: int = 0
    read: bool = False
    woken_at: datetime | None = None
    parent_at: float = 0.0


def begin(leader: int, kind: str, rng: Random) -> Pause:
    """Stop the worker, or the program, in this way, for a time that is longer than a lease."""
    now = time.monotonic()
    pids = [leader] if kind == PROGRAM else _below(leader)
    pause = Pause(leader, kind, now, now + rng.uniform(*_SLEEP) * LEASE, pids)
    if kind in (TOGETHER, FREEZER):
        pause.parent_at = pause.wake_at + max(0.0, rng.uniform(*_PARENT_LATER))
    try:
        _stop(pause)
    except BaseException:
        release(pause)
        raise
    return pause


def _stop(pause: Pause) -> None:
    if pause.kind == FREEZER:
        pause.freezer = Freezer()
        pause.pids = [p for p in pause.freezer.freeze(pause.leader) if p != pause.leader]
        return
    if pause.kind == TOGETHER:
        send(pause.leader, signal.SIGSTOP)
        pause.pids = _below(pause.leader)
    for pid in pause.pids:
        send(pid, signal.SIGSTOP)


def _below(parent: int) -> list[int]:
    """The children, and the processes of handlers under these."""
    below = children(parent)
    return [*below, *(pid for child in below for pid in children(child))]


def look(bed: Bed, pause: Pause, inside: set[Period]) -> None:
    """Read which leases the stopped worker holds, once its last words have been heard."""
    if pause.read or time.monotonic() < pause.began + _SETTLED:
        return
    pause.read = True
    rows = bed.rows(_HELD, pids=pause.pids)
    pause.ends = {(job, token): ends_at for job, token, ends_at in rows}
    pause.inside = len(inside & pause.ends.keys())


def wake(bed: Bed, pause: Pause) -> bool:
    """Resume it when it is time; True once all of it runs."""
    now = time.monotonic()
    if now < pause.wake_at:
        return False
    if pause.woken_at is None:
        pause.woken_at = bed.now()
        if pause.freezer is not None:
            if pause.parent_at > pause.wake_at:
                send(pause.leader, signal.SIGSTOP)
            pause.freezer.thaw()
        else:
            for pid in pause.pids:
                send(pid, signal.SIGCONT)
    if now < pause.parent_at:
        return False
    send(pause.leader, signal.SIGCONT)
    return True


def release(pause: Pause) -> None:
    """Resume it now."""
    if pause.freezer is not None:
        pause.freezer.thaw()
    for pid in (*pause.pids, pause.leader):
        send(pid, signal.SIGCONT)
