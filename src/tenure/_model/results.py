"""Results of operator commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import JobRow


class CancelStatus(StrEnum):
    """The result of a cancel.

    The job ended, its holder was asked to stop, or no live job exists with that id.
    """

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    NOT_LIVE = "not_live"


class RetryStatus(StrEnum):
    RETRIED = "retried"
    KEY_HELD = "key_held"
    SEALED = "sealed"
    NOT_FAILED = "not_failed"


class EditStatus(StrEnum):
    """The result of an edit. Only queued jobs and dead letters can be edited.

    `not_queued`: a dead letter has no start time to change. `sealed`: only a program with the codec
    can replace the arguments.
    """

    EDITED = "edited"
    RUNNING = "running"
    NOT_QUEUED = "not_queued"
    ENDED = "ended"
    SEALED = "sealed"
    NOT_FOUND = "not_found"


class RerunStatus(StrEnum):
    """The result of running an ended job again. `live` jobs (queued or running) have not ended."""

    ENQUEUED = "enqueued"
    KEY_HELD = "key_held"
    LIVE = "live"
    SEALED = "sealed"
    NOT_FOUND = "not_found"


class DeleteStatus(StrEnum):
    """The result of a delete. `live` jobs (queued or running) are kept: cancel them first."""

    DELETED = "deleted"
    LIVE = "live"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The result of a retry. `holder` is the newer job that holds the key."""

    answer: RetryStatus
    holder: JobId | None = None


@dataclass(frozen=True, slots=True)
class RerunResult:
    """The result of running a job again. `job` is the new job, `holder` the one with the key."""

    answer: RerunStatus
    job: JobId | None = None
    holder: JobId | None = None


class FreeStatus(StrEnum):
    """The result of freeing a key. A `live` job keeps its key. Cancel it first."""

    FREED = "freed"
    LIVE = "live"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class FreeResult:
    """The result of freeing a key. `holder` is the job that holds or held it."""

    answer: FreeStatus
    holder: JobId | None = None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Where a list continues: below this id and, in the archive, from this day."""

    before: JobId
    day: date | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs, newest first, which may be shorter than requested.

    `next` is `None` only on the last page.
    """

    jobs: Sequence[JobRow]
    next: PageCursor | None


class JobSource(StrEnum):
    """A place to search for jobs, with its own cursor.

    The values are short because they appear in page tokens.
    """

    IDS = "i"
    QUEUED = "q"
    RUNNING = "r"
    FAILED = "f"
    ARCHIVE = "a"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of search results, newest first.

    `next` maps each unfinished source to the id to continue below. `bounded` means that at least
    one source reached its limit.
    """

    jobs: Sequence[JobRow]
    next: Mapping[JobSource, JobId]
    searched: int
    bounded: bool
    took: timedelta
    now: datetime


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What a maintenance run did, and what it left for the next one."""

    done: Sequence[str]
    left: Sequence[str]
    pruned_failed: int = 0
    pruned_keys: int = 0
    pruned_workers: int = 0
    pruned_ticks: int = 0
    pruned_operations: int = 0
    pruned_answers: int = 0
    pruned_rollups: int = 0
