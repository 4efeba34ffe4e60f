"""What a parent tells a living child: what it settled for a dead one, as only there are listeners;
and that it is the one to fire schedules now.

JSON, one message per line, on the channel between the two.
"""

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass

from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.outcome import Settlement
from tenure._rules import serialization

RUN_SCHEDULER = b'"schedules"\n'


@dataclass(frozen=True, slots=True)
class RecoveredJob:
    """One running period that a parent ended: the job, its attempt, how, and where it went."""

    job_id: JobId
    attempt: int
    state: State
    reason: str | None
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class RecoveredJobs:
    """What a parent ended for a child that died."""

    ended: list[RecoveredJob]

    def __len__(self) -> int:
        return len(self.ended)

    def to_line(self) -> bytes:
        return json.dumps(serialization.dump(self)).encode() + b"\n"


class ParentMessages:
    """Reads what the parent says, as it comes, without ever waiting for it."""

    def __init__(
        self,
        channel: socket.socket,
        tell: Callable[[RecoveredJobs], None],
        run_scheduler: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._tell = tell
        self._run_scheduler = run_scheduler
        self._begun = b""

    def __call__(self) -> None:
        """Read what is there, and tell every message that is whole."""
        read = self._channel.recv(65536, socket.MSG_DONTWAIT)
        if not read:
            asyncio.get_running_loop().remove_reader(self._channel)
        *lines, self._begun = (self._begun + read).split(b"\n")
        for line in lines:
            if line + b"\n" == RUN_SCHEDULER:
                self._run_scheduler()
                continue
            self._tell(serialization.load(json.loads(line), RecoveredJobs))
