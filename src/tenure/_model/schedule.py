"""Schedules, their ticks and their recent runs.

A schedule: when its ticks are, what each enqueues, what becomes of those that were missed.

A tick is one instant of a schedule. It makes exactly one job, or one row that says why not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.ids import JobId
from tenure._model.job import NewJob, State

# What a wakeup carries in the place of a queue's name; no queue can be named so.
SCHEDULES_CHANGED = "@schedules"


class Missed(StrEnum):
    """Which of the ticks that were missed still make a job."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """Whether a tick makes a job while the one of an earlier tick has not ended."""

    ALLOW = "allow"
    SKIP = "skip"


class TickOutcome(StrEnum):
    """What a tick came to."""

    FIRED = "fired"
    SKIPPED = "skipped"


class TickReason(StrEnum):
    """Why a tick was skipped; or, of one that fired, that it was not by the clock alone."""

    MISSED = "missed"
    OVERLAP = "overlap"
    PAUSED = "paused"
    LATE = "late"
    BACKFILL = "backfill"


class ScheduleState(StrEnum):
    """How a schedule fares. `done`: it has no tick to come; `retired`: its program dropped it."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a schedule's ticks are: by exactly one of `cron`, `every` and `at`.

    A cron expression is read in the zone. An interval counts from 1970 in UTC, so that it has
    the same ticks whoever asks, and whenever it was made.
    """

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What becomes of ticks that were missed, overlap, or would come all at once.

    Of missed ticks `all` makes jobs of the last `missed_limit` within `missed_within`. Each job
    is due up to `jitter` after its tick, by a share that only the tick decides.
    """

    missed: Missed = Missed.LATEST
    missed_within: timedelta = timedelta(days=1)
    missed_limit: int = 100
    overlap: Overlap = Overlap.ALLOW
    jitter: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """What an operator sets over a schedule's own policy; None leaves that to the schedule."""

    missed: Missed | None = None
    missed_within: timedelta | None = None
    missed_limit: int | None = None
    jitter: timedelta | None = None

    def over(self, policy: Policy) -> Policy:
        """The policy with what is set here in the place of its own."""
        changes = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(policy, **{k: v for k, v in changes.items() if v is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule as it is asked for. `job` is what each tick enqueues, without time and key."""

    name: str
    timing: Timing
    job: NewJob
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A schedule as the store has it now.

    `version` grows with every change of the definition. `program` and `program_version` say which
    code declares it; without a program it was made at run time. `set_policy` is what an operator
    set over the definition's `policy`, and wins.
    """

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
        """The policy by which ticks are judged."""
        return self.set_policy.over(self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick and what it comes to; `run_at` is when the job it makes is due, if it makes one."""

    fire_at: datetime
    reason: TickReason | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickRow:
    """A tick as it was recorded. `job_id` is the job that it made, if it made one."""

    schedule: str
    fire_at: datetime
    outcome: TickOutcome
    reason: TickReason | None
    job_id: JobId | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FireResult:
    """What one pass over due schedules did: how many ticks it recorded and how many jobs they
    made; when the next schedule is due, if any is, and the time now. Both are the database's.
    `skipped_queues` are those that are due and that this process cannot read, and why."""

    ticks: int
    jobs: int
    next_at: datetime | None
    now: datetime
    skipped_queues: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareResult:
    """What a program's start changed: schedules made, changed and retired, by name; and those
    that are as a newer version of the program left them."""

    made: Sequence[str] = ()
    changed: Sequence[str] = ()
    retired: Sequence[str] = ()
    newer: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChange:
    """A change of a zone's clocks: the instant, what they would have shown and what they show.

    `shown` and `becomes` are times of the zone, without one. Set forward, the times between them
    are left out (a gap); set back, they come twice (an overlap).
    """

    at: datetime
    shown: datetime
    becomes: datetime

    @property
    def by(self) -> timedelta:
        """How far the clocks are set forward; negative if back."""
        return self.becomes - self.shown

    @property
    def is_gap(self) -> bool:
        """Whether times are left out, not repeated."""
        return self.becomes > self.shown


@dataclass(frozen=True, slots=True)
class RecentRuns:
    """What a schedule came to: its last ticks, newest first, and what became of the last job; None
    if there is no such job any more, or never was."""

    ticks: Sequence[TickRow]
    state: State | None
