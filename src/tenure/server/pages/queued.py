"""What a queue comes to: its figures, what is set for it and who works on it, in one row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tenure.admin import is_paused, takes
from tenure.server.pages.drawing import Spark, spark
from tenure.server.shapes.figures import CountOut, DepthOut, PaceOut
from tenure.server.shapes.installation import QueueOut, WorkerOut

_NONE = CountOut(value=0, more=False)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as a page shows it. `pause` is what is set for it where that holds now."""

    name: str
    depth: DepthOut
    pause: QueueOut | None
    limit: int | None
    workers: Sequence[WorkerOut]
    pace: PaceOut | None

    @property
    def is_served(self) -> bool:
        """Whether a worker takes jobs from it."""
        return bool(self.workers)

    @property
    def spark(self) -> Spark | None:
        """Its pace as a picture."""
        return None if self.pace is None else spark(self.pace.completed, self.pace.failed)

    @property
    def ended(self) -> int:
        """How many attempts ended over the minutes that are shown."""
        return 0 if self.pace is None else sum(self.pace.completed) + self.failed

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return 0 if self.pace is None else sum(self.pace.failed)

    @property
    def per_minute(self) -> float:
        """How many ended in a minute."""
        return 0.0 if self.pace is None else self.ended / len(self.pace.completed)

    @property
    def failing(self) -> float | None:
        """Which share of them failed, in percent."""
        return 100 * self.failed / self.ended if self.ended else None


def paused(queue: QueueOut | None) -> QueueOut | None:
    """What is set for a queue, if by that it is paused now."""
    return queue if is_paused(queue, datetime.now(UTC)) else None


def takers(workers: Iterable[WorkerOut], queue: str) -> list[WorkerOut]:
    """The workers that take new jobs from a queue."""
    return [one for one in workers if takes(one.health, one.queues, queue)]


def empty(name: str) -> DepthOut:
    """The figures of a queue that nobody knows."""
    counts = dict.fromkeys(("due", "later", "running", "held", "failed"), _NONE)
    return DepthOut(queue=name, backlog=0, oldest_due_age=None, **counts)
