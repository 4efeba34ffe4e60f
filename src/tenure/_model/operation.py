"""Operations: one action on many jobs.

The items are chosen when the operation starts, and are then processed in chunks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.selector import Selector


class OperationKind(StrEnum):
    """The action on each job. A backfill creates a job for each tick. An erasure leaves nothing."""

    RETRY = "retry"
    CANCEL = "cancel"
    DISCARD = "discard"
    DELETE = "delete"
    MOVE = "move"
    BACKFILL = "backfill"
    ERASE = "erase"


class OperationState(StrEnum):
    """An operation's state. `pending`: not started. `aborted`: the rest will never be done."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"

    @property
    def is_ended(self) -> bool:
        return self in (OperationState.DONE, OperationState.ABORTED)


class ItemOutcome(StrEnum):
    """An item's outcome: the action's result, `busy` (row locked) or `refused` (by PostgreSQL).

    `waiting`: the job runs or its row is locked, and is erased after that.
    """

    RETRIED = "retried"
    KEY_HELD = "key_held"
    NOT_FAILED = "not_failed"
    CANCELLED = "cancelled"
    REQUESTED = "requested"
    NOT_LIVE = "not_live"
    DISCARDED = "discarded"
    DELETED = "deleted"
    LIVE = "live"
    NOT_FOUND = "not_found"
    MOVED = "moved"
    NOT_QUEUED = "not_queued"
    FIRED = "fired"
    HAD_JOB = "had_job"
    ERASED = "erased"
    WAITING = "waiting"
    BUSY = "busy"
    REFUSED = "refused"

    @property
    def is_done(self) -> bool:
        """Return whether the job was changed or created. Otherwise, nothing happened."""
        return self in _DONE


_DONE = frozenset(
    {
        ItemOutcome.RETRIED,
        ItemOutcome.CANCELLED,
        ItemOutcome.REQUESTED,
        ItemOutcome.DISCARDED,
        ItemOutcome.DELETED,
        ItemOutcome.MOVED,
        ItemOutcome.FIRED,
        ItemOutcome.ERASED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The jobs that an operation acts on: those that match every given field, or those in `ids`.

    `after` is inclusive and `before` is exclusive. A `selector` can be combined only with `queue`,
    which must be one of the queues it names. `schedule`, `since` and `until` are for backfills.
    """

    state: State | None = None
    queue: str | None = None
    task: str | None = None
    signature: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    ids: Sequence[int] | None = None
    selector: str | None = None
    schedule: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Where to move queued jobs. None leaves a value unchanged."""

    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperation:
    """A request to start an operation. `rate` is in jobs per second."""

    kind: OperationKind
    filter: Filter
    rate: int
    changes: Changes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBackfill:
    """A request for a backfill: the schedule's ticks to fire, and the queue for their jobs."""

    schedule: str
    queue: str
    since: datetime
    until: datetime
    fire_ats: Sequence[datetime]
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewErasure:
    """A request to erase the jobs that match a selector. `rate` is in jobs per second."""

    selector: Selector
    salt: bytes
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """A stored operation. `done` counts items with an outcome, `waiting` those not yet erased."""

    id: int
    kind: OperationKind
    state: OperationState
    filter: Filter
    changes: Changes | None
    rate: int
    total: int
    done: int
    outcomes: Mapping[ItemOutcome, int] = field(default_factory=dict)
    actor: str
    source: str
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    next_at: datetime | None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Erasure:
    """A started erasure.

    Attributes:
        operation: The operation that erases the jobs.
        rows: How many rows belong to those jobs, by table.
    """

    operation: OperationRow
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OperationItem:
    """One item in an operation. In a backfill, it is the tick at `fire_at`."""

    place: int
    job_id: JobId | None
    outcome: ItemOutcome | None
    fire_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """An operation that includes or included a job, and the job's outcome in it."""

    operation: OperationRow
    outcome: ItemOutcome | None
