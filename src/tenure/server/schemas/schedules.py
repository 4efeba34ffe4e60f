"""Schedules over the wire: durations are seconds, policies are those in force."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tenure.admin import State
from tenure.server.schemas.base import (
    IdOut,
    Instant,
    Name,
    Reason,
    RequestModel,
    ResponseModel,
    Seconds,
    SecondsOut,
)
from tenure.server.schemas.jobs import Attempts, JobOptionsIn, Priority
from tenure.server.schemas.operations import Rate
from tenure.types import Missed, Overlap, ScheduleState, TickOutcome, TickReason

Cron = Annotated[
    str | None, Field(min_length=1, max_length=200, description="Five fields, or `@daily`.")
]
Zone = Annotated[str, Field(min_length=1, max_length=100, examples=["Europe/Berlin"])]
Most = Annotated[int, Field(ge=1, le=10_000)]
Jitter = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
DeclaredLiteral = Literal["declared"]
LocalTime = Annotated[
    str, BeforeValidator(lambda at: at.isoformat() if isinstance(at, datetime) else at)
]


class WhenIn(RequestModel):
    """When ticks are: one of the three. The zone is for `cron`."""

    cron: Cron = None
    every: Seconds | None = None
    at: Annotated[Instant | None, Field(description="With a time zone.")] = None


class ScheduleIn(WhenIn, JobOptionsIn):
    """A schedule to make. What is not given is the queue's, the settings', or built in."""

    name: Name
    timezone: Zone = "UTC"
    task: Name
    missed: Missed = Missed.LATEST
    missed_within: Seconds | None = None
    missed_limit: Most | None = None
    overlap: Overlap = Overlap.ALLOW
    jitter: Jitter = 0
    reason: Reason = None


class ScheduleChangeIn(WhenIn):
    """What is changed of a schedule; what is null stays as it is. Of one that code declares only
    the missed runs and the jitter are changed here; `declared` gives one back to the code."""

    timezone: Zone | None = None
    task: Name | None = None
    args: dict[str, Any] | None = None
    queue: Name | None = None
    priority: Priority = None
    max_attempts: Attempts = None
    timeout: Seconds | None = None
    expires_in: Seconds | None = None
    tags: Annotated[list[Name] | None, Field(max_length=20)] = None
    missed: Missed | DeclaredLiteral | None = None
    missed_within: Seconds | DeclaredLiteral | None = None
    missed_limit: Most | DeclaredLiteral | None = None
    overlap: Overlap | None = None
    jitter: Jitter | DeclaredLiteral | None = None
    reason: Reason = None


class PreviewIn(WhenIn):
    """A timing that no schedule has yet, and how many of its runs are asked for."""

    timezone: Zone = "UTC"
    after: Instant | None = None
    count: Annotated[int, Field(ge=1, le=100)] = 10


class BackfillIn(RequestModel):
    """Which past ticks get the jobs that they do not have: both ends are included."""

    since: Instant
    until: Instant
    rate: Rate = 500
    forgotten: Annotated[
        bool, Field(description="Also ticks so old that nobody knows what they made.")
    ] = False
    dry_run: bool = False
    reason: Reason = None


class ShiftOut(ResponseModel):
    """A change of the zone's clocks: the instant, what they would have shown and what they show."""

    at: datetime
    shown: Annotated[LocalTime, Field(description="A local time, without an offset.")]
    becomes: LocalTime


class RunOut(ResponseModel):
    """A run that is to come: its tick in UTC and in the zone, and when its job is due."""

    fire_at: datetime
    local: datetime
    run_at: datetime
    shift: ShiftOut | None
    moved: Annotated[bool, Field(description="The clock's change moved the tick.")]
    paused: Annotated[bool, Field(description="The tick falls into a pause.")]


class RunListOut(ResponseModel):
    """The next runs, in order."""

    runs: list[RunOut]


class TickOut(ResponseModel):
    """A past run, and what it came to: a job, or why there is none."""

    fire_at: datetime
    outcome: TickOutcome
    reason: TickReason | None
    job_id: IdOut | None
    recorded_at: datetime


class TickListOut(ResponseModel):
    """Past runs, newest first."""

    ticks: list[TickOut]
    next_page_token: str | None


class ScheduleOut(ResponseModel):
    """A schedule as it is now. `set_here` names the policies that an operator has set over what
    the code declares. `payload` says whether the arguments are shown."""

    name: str
    version: int
    state: ScheduleState
    words: Annotated[str, Field(description="When its ticks are, in English.")]
    cron: str | None
    every: SecondsOut | None
    at: datetime | None
    timezone: str
    task: str
    queue: str
    priority: int
    max_attempts: int | None
    timeout: SecondsOut | None
    expires_in: SecondsOut | None
    tags: list[str]
    missed: Missed
    missed_within: SecondsOut
    missed_limit: int
    overlap: Overlap
    jitter: SecondsOut
    set_here: list[str]
    program: Annotated[str | None, Field(description="Whose code declares it.")]
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: IdOut | None
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_reason: str | None
    retired_at: datetime | None
    created_at: datetime
    changed_at: datetime
    payload: bool
    args: Any = None


class ScheduleShownOut(ScheduleOut):
    """A schedule, its next five runs and its last ten."""

    next_runs: list[RunOut]
    past_runs: list[TickOut]


class ScheduleListedOut(ScheduleOut):
    """A schedule in a list; as many of its last ticks as were asked for, and the state of the job
    that the last of these made."""

    past_runs: list[TickOut] = []
    last_state: State | None = None


class ScheduleListOut(ResponseModel):
    """A page of schedules, by name."""

    schedules: list[ScheduleListedOut]
    next_page_token: str | None
