"""The answers that the store gives to operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import JobRow


class CancelStatus(StrEnum):
    """What a cancel came to: at once, by request to the holder, or nothing live had the id."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    NOT_LIVE = "not_live"


class RetryStatus(StrEnum):
    """What a retry of a dead letter came to."""

    RETRIED = "retried"
    KEY_HELD = "key_held"
    NOT_FAILED = "not_failed"


class DeleteStatus(StrEnum):
    """What a delete came to. `live`: the job is queued or running, and stays: cancel it first."""

    DELETED = "deleted"
    LIVE = "live"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The answer to a retry; `holder` is the younger job that has the key, if that is why not."""

    answer: RetryStatus
    holder: JobId | None = None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Where a list goes on: below this id, and for the archive on this day."""

    before: JobId
    day: date | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of a list, newest first; it may come short. `next` is None at the end alone."""

    jobs: Sequence[JobRow]
    next: PageCursor | None


class JobSource(StrEnum):
    """Where jobs are searched, each below an id of its own; the value is short, for page tokens."""

    IDS = "i"
    QUEUED = "q"
    RUNNING = "r"
    FAILED = "f"
    ARCHIVE = "a"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of what was searched for, newest first. `next` says below which id each pile is
    still to be searched; it is empty at the end alone. `searched` counts the rows that were looked
    at; `bounded`: some pile was not searched to its end."""

    jobs: Sequence[JobRow]
    next: Mapping[JobSource, JobId]
    searched: int
    bounded: bool
    took: timedelta
    now: datetime


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What partition upkeep and pruning did, and what it had to leave for the next time."""

    done: Sequence[str]
    left: Sequence[str]
    pruned_failed: int = 0
    pruned_keys: int = 0
    pruned_workers: int = 0
    pruned_ticks: int = 0
    pruned_operations: int = 0
    pruned_answers: int = 0
    pruned_rollups: int = 0
