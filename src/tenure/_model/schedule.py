"""Schedules and ticks. A tick creates exactly one job, or records why it didn't."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import NewJob, State

# Sent in a wakeup in place of a queue name. No queue can have this name.
SCHEDULES_CHANGED = "@schedules"


class Missed(StrEnum):
    """Which missed ticks still create a job."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """Whether a tick creates a job while an earlier tick's job hasn't ended."""

    ALLOW = "allow"
    SKIP = "skip"


class TickOutcome(StrEnum):
    FIRED = "fired"
    SKIPPED = "skipped"


class TickReason(StrEnum):
    """Why a tick was skipped, or why it didn't run on time."""

    MISSED = "missed"
    OVERLAP = "overlap"
    PAUSED = "paused"
    LATE = "late"
    BACKFILL = "backfill"


class ScheduleState(StrEnum):
    """A schedule's state. `done`: no more ticks. `retired`: its program no longer declares it."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times at which a schedule fires.

    Exactly one of these is set: `cron` (in the time zone), `every` (counted from 1970) or `at`.
    """

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to handle ticks that were missed, that overlap, or that would all fire at once."""

    missed: Missed = Missed.LATEST
    missed_within: timedelta = timedelta(days=1)
    missed_limit: int = 100
    overlap: Overlap = Overlap.ALLOW
    jitter: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """An operator's overrides of a schedule's policy. None keeps the schedule's own value."""

    missed: Missed | None = None
    missed_within: timedelta | None = None
    missed_limit: int | None = None
    jitter: timedelta | None = None

    def over(self, policy: Policy) -> Policy:
        changes = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(policy, **{k: v for k, v in changes.items() if v is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A request for a schedule.

    `job` is the job that each tick enqueues, without its time and key.
    """

    name: str
    timing: Timing
    job: NewJob
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A stored schedule. If `program` is None, the schedule was created at run time."""

    name: str
    version: int
    timing: Timing
    job: NewJob
    policy: Policy
    set_policy: PolicyChange
    state: ScheduleState
    program: str | None
    program_version: tuple[int, ...]
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: JobId | None
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_reason: str | None
    retired_at: datetime | None
    created_at: datetime
    changed_at: datetime

    @property
    def in_force(self) -> Policy:
        return self.set_policy.over(self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick. `run_at` is when its job is due, if it creates one."""

    fire_at: datetime
    reason: TickReason | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickRow:
    """A recorded tick. `job_id` is the job it created, if any."""

    schedule: str
    fire_at: datetime
    outcome: TickOutcome
    reason: TickReason | None
    job_id: JobId | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FireResult:
    """The result of one pass over the due schedules.

    `skipped_queues` maps each schedule that couldn't be read on this machine to the reason.
    """

    ticks: int
    jobs: int
    next_at: datetime | None
    now: datetime
    skipped_queues: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareResult:
    """Schedules changed by a program's startup. Those in `newer` belong to a newer version."""

    made: Sequence[str] = ()
    changed: Sequence[str] = ()
    retired: Sequence[str] = ()
    newer: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChange:
    """A clock change in a time zone.

    Setting the clock forward creates a gap, and setting it back creates an overlap.
    """

    at: datetime
    shown: datetime
    becomes: datetime

    @property
    def by(self) -> timedelta:
        """Return how far the clocks are set forward. The value is negative if they are set back."""
        return self.becomes - self.shown

    @property
    def is_gap(self) -> bool:
        """Return whether local times are skipped, not repeated."""
        return self.becomes > self.shown


@dataclass(frozen=True, slots=True)
class RecentRuns:
    """A schedule's latest ticks, newest first, and the state of its last job if it still exists."""

    ticks: Sequence[TickRow]
    state: State | None
