"""An operation: one action on many jobs, or one job for each of many ticks. Its members are frozen
at its start, and done in chunks.

An item is one member; it has its outcome once its chunk is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import State


class OperationKind(StrEnum):
    """What is done to each job; or, of a backfill, that each tick gets its job."""

    RETRY = "retry"
    CANCEL = "cancel"
    DISCARD = "discard"
    DELETE = "delete"
    MOVE = "move"
    BACKFILL = "backfill"


class OperationState(StrEnum):
    """How an operation fares. `pending`: none of it is done yet; `aborted`: the rest never is."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is done."""
        return self in (OperationState.DONE, OperationState.ABORTED)


class ItemOutcome(StrEnum):
    """What became of an item: what the verb answered; or that its row stayed locked (`busy`), or
    that the database refused it (`refused`)."""

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
    BUSY = "busy"
    REFUSED = "refused"

    @property
    def is_done(self) -> bool:
        """Whether the job was changed or made as asked; else all is as it was."""
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
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs an operation is for: those that match all that is said, or those of `ids`.

    `signature` is that of a dead letter's error. `after` is included, `before` is not. `selector`
    is the text of one, which says it all; `queue` beside it is the one queue that it names. Of a
    backfill: the schedule, the queue of its jobs, and the first and the last instant.
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
    """Where a move puts queued jobs; what is None stays as it is."""

    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperation:
    """An operation as it is asked for; `rate` is in jobs per second."""

    kind: OperationKind
    filter: Filter
    rate: int
    changes: Changes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBackfill:
    """A backfill as it is asked for: these ticks of a schedule, whose jobs go to the queue."""

    schedule: str
    queue: str
    since: datetime
    until: datetime
    fire_ats: Sequence[datetime]
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """An operation as the store has it now. `done` counts the items that have their outcome,
    `outcomes` how many have which; `next_at` is when its next chunk is due."""

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


@dataclass(frozen=True, slots=True)
class OperationItem:
    """One member of an operation, by its place; the outcome is None until its chunk is done. Of a
    backfill it is the tick at `fire_at`, and has a job once one is made."""

    place: int
    job_id: JobId | None
    outcome: ItemOutcome | None
    fire_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """An operation that one job is or was a member of, and what became of the job there."""

    operation: OperationRow
    outcome: ItemOutcome | None
