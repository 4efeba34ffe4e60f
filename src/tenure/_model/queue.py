"""A queue's own settings, and lanes: where a claim looks."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.ids import JobId

# The row that speaks for the whole installation.
EVERY_QUEUE = "*"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """What an operator has set for a queue; an absent row is the defaults."""

    name: str
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    paused_by: str | None = None
    paused_reason: str | None = None
    max_running: int | None = None
    lease: timedelta | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Floor:
    """A place in a lane below which a claim need not look. A hint, never a promise."""

    run_at: datetime
    id: JobId


@dataclass(frozen=True, slots=True)
class Lane:
    """One (queue, priority), read above a floor; what was given back is read before it."""

    queue: str
    priority: int
    floor: Floor | None = None
