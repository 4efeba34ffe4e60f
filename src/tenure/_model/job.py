"""Jobs: the request to enqueue one, and the stored row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import overload

from tenure._model.ids import JobId, Json, Token, WorkerId

# Most urgent first.
PRIORITIES = range(9, -1, -1)
DEFAULT_PRIORITY = 5
# Kinds of work that need no function of the user's.
KIND_NAMES = ("http", "shell", "grpc")
# The key for middleware's fields in a job's meta, separate from Tenure's own.
_FIELDS = "fields"


class State(StrEnum):
    """A job's state. "Scheduled" and "retrying" aren't stored: both are `queued`."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_live(self) -> bool:
        """Return whether the job is queued or running, and therefore in the live table."""
        return self in (State.QUEUED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class NewJob:
    """One enqueue call. A field that is `None` gets its default from the queue or the settings.

    At most one of `run_at` and `delay` may be set, and neither may be in the past by the database's
    clock. `key` makes the job unique within its task until the job ends, and for `key_for` after
    that.
    """

    task: str
    queue: str = "default"
    args: Json = field(default_factory=dict)
    priority: int = DEFAULT_PRIORITY
    run_at: datetime | None = None
    delay: timedelta | None = None
    key: str | None = None
    key_for: timedelta | None = None
    max_attempts: int | None = None
    max_losses: int | None = None
    lease: timedelta | None = None
    target: int | None = None
    held: bool = False
    meta: dict[str, Json] = field(default_factory=dict)


class UniformBatch(Sequence[NewJob]):
    """Jobs that differ only in their arguments, enqueued together. Each is built on access."""

    __slots__ = ("args", "job")

    def __init__(self, job: NewJob, args: Sequence[Json]) -> None:
        self.job: NewJob = job
        self.args: Sequence[Json] = args

    def __len__(self) -> int:
        return len(self.args)

    @overload
    def __getitem__(self, index: int) -> NewJob: ...
    @overload
    def __getitem__(self, index: slice) -> "UniformBatch": ...
    def __getitem__(self, index: int | slice) -> "NewJob | UniformBatch":
        if isinstance(index, slice):
            return UniformBatch(self.job, self.args[index])
        return replace(self.job, args=self.args[index])


@dataclass(frozen=True, slots=True)
class EnqueueResult:
    """The result of an enqueue. `created` is False if a job already held the key."""

    id: JobId
    created: bool


# It is never modified, but it isn't frozen, because that would make creating one ten times slower.
@dataclass(slots=True)
class JobRow:
    """A stored job: live, a dead letter, or archived."""

    id: JobId
    state: State
    queue: str
    task: str
    args: Json
    priority: int
    attempt: int
    max_attempts: int
    losses: int
    token: Token
    run_at: datetime
    created_at: datetime
    key: str | None = None
    held: bool = False
    cancel_requested: bool = False
    claimed_by: WorkerId | None = None
    claimed_at: datetime | None = None
    lease_expires_at: datetime | None = None
    ended_at: datetime | None = None
    done_reason: str | None = None
    result: Json = None
    cursor: Json = None
    progress: Json = None
    items: int = 0
    meta: Json = None
    worker_losses: int = 0
    deaths: int = 0
    suspect: bool = False


def fields(meta: Json) -> Mapping[str, Json]:
    """Return the fields that middleware attached to a job."""
    values: Mapping[str, Json] = (meta or {}).get(_FIELDS) or {}
    return values


def with_fields(meta: Mapping[str, Json], values: Mapping[str, Json]) -> dict[str, Json]:
    return {**meta, _FIELDS: dict(values)}
