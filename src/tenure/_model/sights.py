"""What people look at beside jobs: leases that are held, queues minute by minute, what schedules
came to lately, pages of the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.audit import AuditRow
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import State
from tenure._model.schedule import TickRow


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


@dataclass(frozen=True, slots=True)
class Pace:
    """How many attempts of a queue completed and failed, minute by minute."""

    completed: Sequence[int]
    failed: Sequence[int]


@dataclass(frozen=True, slots=True)
class Paces:
    """The pace of each queue over the minutes from `since` up to `until`. After `folded_to` nothing
    is counted yet."""

    since: datetime
    until: datetime
    folded_to: datetime | None
    queues: Mapping[str, Pace]


@dataclass(frozen=True, slots=True)
class Lately:
    """What a schedule came to: its last ticks, newest first, and what became of the last job; None
    if there is no such job any more, or never was."""

    ticks: Sequence[TickRow]
    state: State | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit, newest first, found among so many that were searched. `next` is below
    which id there is more; None at the end alone."""

    rows: Sequence[AuditRow]
    searched: int
    next: int | None
