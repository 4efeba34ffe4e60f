"""Messages from the parent to a child: JSON, one message per line.

Some messages forward jobs that the parent settled for a dead child, because only children have
listeners. Another message makes a child run the schedules.
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
    job_id: JobId
    attempt: int
    state: State
    reason: str | None
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class RecoveredJobs:
    ended: list[RecoveredJob]

    def __len__(self) -> int:
        return len(self.ended)

    def to_line(self) -> bytes:
        return json.dumps(serialization.dump(self)).encode() + b"\n"


class ParentMessages:
    """Read the parent's messages without waiting."""

    def __init__(
        self,
        channel: socket.socket,
        on_recovered: Callable[[RecoveredJobs], None],
        run_scheduler: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._on_recovered = on_recovered
        self._run_scheduler = run_scheduler
        self._begun = b""

    def __call__(self) -> None:
        read = self._channel.recv(65536, socket.MSG_DONTWAIT)
        if not read:
            asyncio.get_running_loop().remove_reader(self._channel)
        *lines, self._begun = (self._begun + read).split(b"\n")
        for line in lines:
            if line + b"\n" == RUN_SCHEDULER:
                self._run_scheduler()
                continue
            self._on_recovered(serialization.load(json.loads(line), RecoveredJobs))
