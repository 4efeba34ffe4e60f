"""A job: what is asked for at enqueue, and the row as the store keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import overload

from tenure._model.ids import JobId, Json, Token, WorkerId

# The most urgent first.
PRIORITIES = range(9, -1, -1)
DEFAULT_PRIORITY = 5
# Where middleware's notes are in a job's meta, apart from what Tenure itself keeps there.
_FIELDS = "fields"


class State(StrEnum):
    """Where a job is in its life. "Scheduled" and "retrying" are views of `queued`."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_live(self) -> bool:
        """Whether the job is still to run or running, and so in the live table."""
        return self in (State.QUEUED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class NewJob:
    """One call to enqueue. `None` leaves the choice to the queue, the settings, the defaults.

    At most one of `run_at` and `delay` is given; both are bounded below by the database's
    clock. `key` makes the job unique within its task while it lives, and for `key_for` after.
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
    """Jobs that differ in nothing but their arguments. Each is made when it is looked at, and
    nobody has to: a thousand of them are enqueued as one."""

    __slots__ = ("args", "job")

    def __init__(self, job: NewJob, args: Sequence[Json]) -> None:
        self.job = job
        self.args = args

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
    """The answer to an enqueue. `created` is False when the key already had a job."""

    id: JobId
    created: bool


# Not frozen, though nothing changes it: that would make each one ten times as dear.
@dataclass(slots=True)
class JobRow:
    """A job as the store has it now: live, among the dead letters, or in the archive."""

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
    """What middleware noted with a job, out of its meta."""
    noted: Mapping[str, Json] = (meta or {}).get(_FIELDS) or {}
    return noted


def with_fields(meta: Mapping[str, Json], noted: Mapping[str, Json]) -> dict[str, Json]:
    """The meta with what middleware noted."""
    return {**meta, _FIELDS: dict(noted)}
