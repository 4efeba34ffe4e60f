"""Leases, and the results of claim, renew, progress, settle and rescue."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId, Json, Token, WorkerId
from tenure._model.job import JobRow, State


class Lease(NamedTuple):
    """The right to run one attempt at a job.

    Every renewal and settlement includes the whole lease. Once a newer claim has replaced the
    lease, the store ignores such writes. The local clock can only make the holder stop earlier,
    never later (see `_rules.leasing`).
    """

    job_id: JobId
    token: Token
    claimed_by: WorkerId
    ttl: timedelta


class ClaimedJob(NamedTuple):
    """A claimed job and its lease. If `confirm` is set, the holder must first confirm the start."""

    job: JobRow
    lease: Lease
    returned: bool = False
    confirm: bool = False


class UnreadableClaim(NamedTuple):
    """A claimed job that can't be read, and the reason. The claim fails the job under its lease."""

    lease: Lease
    queue: str
    task: str
    why: str

    def __str__(self) -> str:
        where = f"id={self.lease.job_id}, queue={self.queue}, task={self.task}"
        return f"{where}: {self.why}"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a claim.

    `found` counts the jobs that were due and free. It exceeds the number of `jobs` when a suspect
    is claimed alone. `limited` means that one of the queues has a limit. Passing this to the next
    claim saves a statement. `skipped_queues` lists queues that weren't read to the end because they
    are paused or limited. `now` is the database's time, no later than the statement's. `rescued`
    lists expired leases in limited queues, which this claim ended first. `unreadable` lists jobs
    that became dead letters.
    """

    jobs: Sequence[ClaimedJob]
    found: int
    limited: bool
    skipped_queues: frozenset[str]
    now: datetime
    rescued: "Sequence[RescuedLease]" = ()
    unreadable: Sequence[UnreadableClaim] = ()


class RenewStatus(StrEnum):
    """The result of a renewal. Stop working only on `lost`. Retry `busy` immediately."""

    RENEWED = "renewed"
    BUSY = "busy"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class RenewResult:
    answer: RenewStatus
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class ProgressResult:
    """The result of a progress report. If `reached` is true, the report also settled the job."""

    items: int
    added: int
    reached: bool
    cancel_requested: bool


class SettleStatus(StrEnum):
    """The result of settling one lease.

    `repeated` means that this lease was already settled the same way, which is harmless. `refused`
    means that the attempt had already ended differently. Nothing changed, and the refused result is
    kept with the attempt as evidence. `busy` means that another transaction has locked the row, so
    try again.
    """

    SETTLED = "settled"
    REPEATED = "repeated"
    REFUSED = "refused"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class SettleResult:
    """The result of settling: the job's new state, or how the attempt had already ended."""

    answer: SettleStatus
    state: State | None = None
    late: bool = False
    ending: AttemptOutcome | None = field(default=None, compare=False)
    reason: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RescuedLease:
    """An expired lease ended by a rescue. `state` is the job's new state."""

    job_id: JobId
    token: Token
    claimed_by: WorkerId
    queue: str
    state: State
    worker_losses: int
    reason: str | None
    task: str
    attempt: int
    max_attempts: int
    key: str | None = None
    meta: Json = None


@dataclass(frozen=True, slots=True)
class StuckLease:
    """A lease that expired long ago but can't be rescued, and what is locking its row, if known."""

    job_id: JobId
    pid: int | None
    application: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class RescueResult:
    """The result of a rescue.

    `found` also counts leases that couldn't be ended because their keys were locked.
    """

    jobs: Sequence[RescuedLease]
    found: int
    now: datetime


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A running job's lease. `length` is as of the last renewal."""

    job_id: JobId
    queue: str
    task: str
    attempt: int
    max_attempts: int
    worker: WorkerId
    claimed_at: datetime
    expires_at: datetime
    length: timedelta
    remaining: timedelta
    renewals: int
    cancel_requested: bool
