"""Queue settings, and lanes: where a claim looks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tenure._model.ids import JobId

# The name of the row that applies to all queues.
EVERY_QUEUE = "*"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """An operator's settings for a queue. Without a row, the defaults apply."""

    name: str
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    paused_by: str | None = None
    paused_reason: str | None = None
    max_running: int | None = None
    lease: timedelta | None = None
    max_attempts: int | None = None
    quotas: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """Estimated queue usage.

    `jobs` is the number of live jobs, counted up to a bound. `payload_bytes` is estimated from a
    sample of them.
    """

    jobs: int
    payload_bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Floor:
    """A position in a lane that claims don't look below. It's a hint, not a guarantee."""

    run_at: datetime
    id: JobId


@dataclass(frozen=True, slots=True)
class Lane:
    """The jobs with one queue and priority, read upward from a floor.

    Jobs returned to the queue are read first, even if they are below the floor.
    """

    queue: str
    priority: int
    floor: Floor | None = None
