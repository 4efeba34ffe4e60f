"""What a person at the terminal has chosen, and what their keys come to. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.types import QueueSummary

_DIGITS = 19


class QueueOrder(StrEnum):
    """By what queues are sorted."""

    NAME = "name"
    DUE = "due"
    OLDEST = "oldest due"
    RUNNING = "running"
    FAILED = "failed"


class PromptKind(StrEnum):
    """What a line is being typed for."""

    REASON = "reason"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Steer:
    """Pause or resume a queue."""

    queue: str
    pause: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Open:
    """Look a job up."""

    job_id: int


@dataclass(frozen=True, slots=True)
class Quit:
    """Enough seen."""


Wish = Steer | Open | Quit


@dataclass(slots=True)
class TopState:
    """The order of the queues, the one chosen, a line that is typed, what was opened or done."""

    order: QueueOrder = QueueOrder.NAME
    chosen: str | None = None
    asked: PromptKind | None = None
    typed: str = ""
    said: str = ""
    opened: Sequence[str] | None = None
    pausing: bool = True
    _queues: list[str] = field(default_factory=list)
    _paused: set[str] = field(default_factory=set)

    def sorted(self, queues: "Sequence[QueueSummary]") -> "list[QueueSummary]":
        """The queues in the chosen order; one of them is always the chosen one."""
        found = sorted(queues, key=self._key)
        self._queues = [queue.name for queue in found]
        self._paused = {queue.name for queue in found if queue.paused}
        if self.chosen not in self._queues:
            self.chosen = self._queues[0] if self._queues else None
        return found

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

    def press(self, key: str) -> Wish | None:
        """What a key comes to; it may be nothing but another look."""
        if self.asked is not None:
            return self._type(key)
        self.said = ""
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
                self.asked, self.typed = PromptKind.REASON, ""
                self.pausing = self.chosen not in self._paused
            case "o":
                self.asked, self.typed = PromptKind.JOB, ""
            case _:
                pass
        return None

    def _move(self, by: int) -> None:
        if self._queues:
            at = self._queues.index(self.chosen) if self.chosen in self._queues else 0
            self.chosen = self._queues[(at + by) % len(self._queues)]

    def _type(self, key: str) -> Wish | None:
        match key:
            case "escape":
                self.asked = None
            case "enter":
                return self._typed()
            case "backspace":
                self.typed = self.typed[:-1]
            case _ if len(key) == 1 and key.isprintable():
                number = self.asked is PromptKind.JOB
                if not number or (key.isdecimal() and len(self.typed) < _DIGITS):
                    self.typed += key
        return None

    def _typed(self) -> Wish | None:
        asked, self.asked = self.asked, None
        if asked is PromptKind.REASON and self.chosen is not None:
            return Steer(self.chosen, self.pausing, self.typed.strip() or None)
        if asked is PromptKind.JOB and self.typed:
            return Open(min(int(self.typed), 2**63 - 1))
        return None

    @property
    def prompt(self) -> str | None:
        """The line that is typed, and what for."""
        match self.asked:
            case None:
                return None
            case PromptKind.REASON:
                verb = "pause" if self.pausing else "resume"
                return f"{verb} {self.chosen}; reason: {self.typed}█"
            case PromptKind.JOB:
                return f"job: {self.typed}█"
