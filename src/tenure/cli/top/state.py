"""The user's choices, and what each key does. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.types import QueueSummary

_DIGITS = 19


class QueueOrder(StrEnum):
    """The queue order."""

    NAME = "name"
    DUE = "due"
    OLDEST = "oldest due"
    RUNNING = "running"
    FAILED = "failed"


class PromptKind(StrEnum):
    """What a typed line is for."""

    REASON = "reason"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class PauseOrResume:
    """Pause or resume a queue."""

    queue: str
    pause: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class OpenJob:
    """Open a job."""

    job_id: int


@dataclass(frozen=True, slots=True)
class Quit:
    """Quit."""


Request = PauseOrResume | OpenJob | Quit


@dataclass(slots=True)
class TopState:
    """The queue order, the selected queue, the typed line, the open job, the last message."""

    order: QueueOrder = QueueOrder.NAME
    chosen: str | None = None
    prompted: PromptKind | None = None
    typed: str = ""
    message: str = ""
    opened: Sequence[str] | None = None
    pausing: bool = True
    _queues: list[str] = field(default_factory=list)
    _paused: set[str] = field(default_factory=set)

    def sorted(self, queues: "Sequence[QueueSummary]") -> "list[QueueSummary]":
        """Sort the queues. One of them is always selected."""
        ordered = sorted(queues, key=self._key)
        self._queues = [queue.name for queue in ordered]
        self._paused = {queue.name for queue in ordered if queue.paused}
        if self.chosen not in self._queues:
            self.chosen = self._queues[0] if self._queues else None
        return ordered

    def _key(self, queue: "QueueSummary") -> "tuple[float, str]":
        depth = queue.depth
        weights = {
            QueueOrder.NAME: 0.0,
            QueueOrder.DUE: depth.due.value,
            QueueOrder.OLDEST: (depth.oldest_due_age or timedelta(0)).total_seconds(),
            QueueOrder.RUNNING: depth.running.value,
            QueueOrder.FAILED: depth.failed.value,
        }
        return -weights[self.order], queue.name

    def press(self, key: str) -> Request | None:
        """Handle a key, and return the resulting request, if any."""
        if self.prompted is not None:
            return self._type(key)
        self.message = ""
        if self.opened is not None:
            self.opened = None
            return Quit() if key == "q" else None
        match key:
            case "q":
                return Quit()
            case "s":
                orders = list(QueueOrder)
                self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            case "up" | "k":
                self._move(-1)
            case "down" | "j":
                self._move(1)
            case "p" if self.chosen is not None:
                self.prompted, self.typed = PromptKind.REASON, ""
                self.pausing = self.chosen not in self._paused
            case "o":
                self.prompted, self.typed = PromptKind.JOB, ""
            case _:
                pass
        return None

    def _move(self, by: int) -> None:
        if self._queues:
            at = self._queues.index(self.chosen) if self.chosen in self._queues else 0
            self.chosen = self._queues[(at + by) % len(self._queues)]

    def _type(self, key: str) -> Request | None:
        match key:
            case "escape":
                self.prompted = None
            case "enter":
                return self._typed()
            case "backspace":
                self.typed = self.typed[:-1]
            case _ if len(key) == 1 and key.isprintable():
                number = self.prompted is PromptKind.JOB
                if not number or (key.isdecimal() and len(self.typed) < _DIGITS):
                    self.typed += key
        return None

    def _typed(self) -> Request | None:
        prompted, self.prompted = self.prompted, None
        if prompted is PromptKind.REASON and self.chosen is not None:
            return PauseOrResume(self.chosen, self.pausing, self.typed.strip() or None)
        if prompted is PromptKind.JOB and self.typed:
            return OpenJob(min(int(self.typed), 2**63 - 1))
        return None

    @property
    def prompt(self) -> str | None:
        """The typed line, with its label."""
        match self.prompted:
            case None:
                return None
            case PromptKind.REASON:
                verb = "pause" if self.pausing else "resume"
                return f"{verb} {self.chosen}; reason: {self.typed}█"
            case PromptKind.JOB:
                return f"job: {self.typed}█"
