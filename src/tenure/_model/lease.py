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
    """The right to run one attempt of one job, until the store says otherwise.

    The store is the judge: each renew and settle names the whole lease and touches nothing
    once a newer claim has replaced it. Local time only makes the holder stop earlier, never
    later (see `_rules.leasing`).
    """

    job_id: JobId
    token: Token
    claimed_by: WorkerId
    ttl: timedelta


class ClaimedJob(NamedTuple):
    """A job and the lease it was claimed under; `returned` if it had been given back before,
    `confirm` if its holder must say that it begins before it does."""

    job: JobRow
    lease: Lease
    returned: bool = False
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The answer to a claim.

    `found` counts what was due and free, which is more than `jobs` when a suspect came
    alone. `limited` says that a queue asked for has a limit: the next claim should say so
    too and spare a statement. `skipped_queues` are queues that were not read to their end, being
    paused or limited. `now` is the database's time, at the latest that of the statement.
    `rescued` is what had run out in the limited queues and was ended first.
    """

    jobs: Sequence[ClaimedJob]
    found: int
    limited: bool
    skipped_queues: frozenset[str]
    now: datetime
    rescued: "Sequence[RescuedLease]" = ()


class RenewStatus(StrEnum):
    """What a renewal came to. Only `lost` stops work; `busy` is tried again at once."""

    RENEWED = "renewed"
    BUSY = "busy"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class RenewResult:
    """The answer to one lease's renewal."""

    answer: RenewStatus
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class ProgressResult:
    """The answer to a progress report: items known so far, new ones, whether the target is met.

    When `reached`, the report has also settled the job.
    """

    items: int
    added: int
    reached: bool
    cancel_requested: bool


class SettleStatus(StrEnum):
    """What a settle came to for one lease.

    `repeated` says that this lease had settled before, in the same way: harmless. `refused`
    says that its running period had ended otherwise: nothing was changed, and the result is
    kept on its attempt as evidence. `busy` says that somebody has the row locked: ask again.
    """

    SETTLED = "settled"
    REPEATED = "repeated"
    REFUSED = "refused"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class SettleResult:
    """The answer to one lease's settle: where the job went, or how the period had ended before."""

    answer: SettleStatus
    state: State | None = None
    late: bool = False
    ending: AttemptOutcome | None = field(default=None, compare=False)
    reason: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RescuedLease:
    """A lease that was over and that a rescue ended; `state` is where the job went."""

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
    """A lease that is long over and could not be rescued, and who has its row locked, if known."""

    job_id: JobId
    pid: int | None
    application: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class RescueResult:
    """The answer to a rescue; `found` also counts what could not be ended now (a locked key)."""

    jobs: Sequence[RescuedLease]
    found: int
    now: datetime


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """The lease of a running job: whose it is, and when it ends unless it is renewed. `length` is
    what it had after its last renewal, `remaining` what is left of that by the database's clock."""

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
