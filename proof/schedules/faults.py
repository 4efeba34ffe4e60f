"""A scheduler that is killed between two statements of its firing: performs steps of the operation
and then SIGKILLs itself. For processes made from a clean one that has all of this loaded."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from proof.schedules.simulated import Clock, Scheduler

if TYPE_CHECKING:
    from datetime import datetime

COUNT = 10


def die_after(url: str, now: datetime, steps: int) -> None:
    """Perform this many steps of a firing and be killed; return if there are fewer."""
    scheduler = Scheduler(url, Clock(now))
    scheduler.begin(COUNT)
    for _ in range(steps):
        if scheduler.advance() is not None:
            return
    os.kill(os.getpid(), signal.SIGKILL)


def die_sending(url: str, now: datetime, steps: int) -> None:
    """The same, but the step after these is sent too, and its answer is never read."""
    scheduler = Scheduler(url, Clock(now))
    scheduler.begin(COUNT)
    for _ in range(steps):
        if scheduler.advance() is not None:
            return
    scheduler.send()
    os.kill(os.getpid(), signal.SIGKILL)
