"""A lease, and the answers that the store gives to its holder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from tenure._model.ending import Ending
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


class Claimed(NamedTuple):
    """A job and the lease it was claimed under; `returned` if it had been given back before,
    `confirm` if its holder must say that it begins before it does."""

    job: JobRow
    lease: Lease
    returned: bool = False
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class Claims:
    """The answer to a claim.

    `found` counts what was due and free, which is more than `jobs` when a suspect came
    alone. `limited` says that a queue asked for has a limit: the next claim should say so
    too and spare a statement. `unread` are queues that were not read to their end, being
    paused or limited. `now` is the database's time, at the latest that of the statement.
    `rescued` is what had run out in the limited queues and was ended first.
    """

    jobs: Sequence[Claimed]
    found: int
    limited: bool
    unread: frozenset[str]
    now: datetime
    rescued: "Sequence[Rescued]" = ()


class Renewed(StrEnum):
    """What a renewal came to. Only `lost` stops work; `busy` is tried again at once."""

    RENEWED = "renewed"
    BUSY = "busy"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Renewal:
    """The answer to one lease's renewal."""

    answer: Renewed
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer to a progress report: items known so far, new ones, whether the target is met.

    When `reached`, the report has also settled the job.
    """

    items: int
    added: int
    reached: bool
    cancel_requested: bool


class Settling(StrEnum):
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
class Settled:
    """The answer to one lease's settle: where the job went, or how the period had ended before."""

    answer: Settling
    state: State | None = None
    late: bool = False
    ending: Ending | None = field(default=None, compare=False)
    reason: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Rescued:
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
class Overdue:
    """A lease that is long over and could not be rescued, and who has its row locked, if known."""

    job_id: JobId
    pid: int | None
    application: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Rescues:
    """The answer to a rescue; `found` also counts what could not be ended now (a locked key)."""

    jobs: Sequence[Rescued]
    found: int
    now: datetime
