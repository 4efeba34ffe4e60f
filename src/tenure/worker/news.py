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
from tenure._rules import values

TAKE_SCHEDULES = b'"schedules"\n'


@dataclass(frozen=True, slots=True)
class End:
    """One running period that a parent ended: the job, its attempt, how, and where it went."""

    job_id: JobId
    attempt: int
    state: State
    reason: str | None
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class News:
    """What a parent ended for a child that died."""

    ended: list[End]

    def __len__(self) -> int:
        return len(self.ended)

    def to_line(self) -> bytes:
        """The news as a message."""
        return json.dumps(values.dump(self)).encode() + b"\n"


class Heard:
    """Reads what the parent says, as it comes, without ever waiting for it."""

    def __init__(
        self,
        channel: socket.socket,
        tell: Callable[[News], None],
        take_schedules: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._tell = tell
        self._take_schedules = take_schedules
        self._begun = b""

    def __call__(self) -> None:
        """Read what is there, and tell every message that is whole."""
        read = self._channel.recv(65536, socket.MSG_DONTWAIT)
        if not read:
            asyncio.get_running_loop().remove_reader(self._channel)
        *lines, self._begun = (self._begun + read).split(b"\n")
        for line in lines:
            if line + b"\n" == TAKE_SCHEDULES:
                self._take_schedules()
                continue
            self._tell(values.load(json.loads(line), News))
