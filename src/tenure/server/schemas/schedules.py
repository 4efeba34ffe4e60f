"""Schedule models."""

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
from tenure.server.schemas.jobs import Attempts, Priority, WorkIn
from tenure.server.schemas.operations import Rate
from tenure.types import Missed, Overlap, ScheduleState, TickOutcome, TickReason

Cron = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="A five-field cron expression, or a shortcut such as `@daily`.",
        examples=["0 9 * * 1-5"],
    ),
]
Zone = Annotated[str, Field(min_length=1, max_length=100, examples=["Europe/Berlin"])]
Most = Annotated[int, Field(ge=1, le=10_000)]
Jitter = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
DeclaredLiteral = Literal["declared"]
LocalTime = Annotated[
    str, BeforeValidator(lambda at: at.isoformat() if isinstance(at, datetime) else at)
]


class WhenIn(RequestModel):
    """When a schedule runs: exactly one of `cron`, `every` and `at`."""

    cron: Cron = None
    every: Annotated[Seconds | None, Field(description="Interval in seconds.")] = None
    at: Annotated[Instant | None, Field(description="Run once, at this time.")] = None


class ScheduleIn(WhenIn, WorkIn):
    """A schedule to create. Omitted options come from the queue, the settings or the defaults."""

    name: Annotated[Name, Field(description="Unique name.", examples=["nightly"])]
    timezone: Annotated[Zone, Field(description="The time zone for `cron`.")] = "UTC"
    missed: Annotated[
        Missed, Field(description="What to do about runs that didn't happen on time.")
    ] = Missed.LATEST
    missed_within: Annotated[
        Seconds | None,
        Field(description="With `missed: all`, how far back to catch up on missed runs."),
    ] = None
    missed_limit: Annotated[
        Most | None, Field(description="With `missed: all`, how many missed runs to catch up on.")
    ] = None
    overlap: Annotated[
        Overlap, Field(description="Whether to enqueue a job before the previous one has ended.")
    ] = Overlap.ALLOW
    jitter: Annotated[Jitter, Field(description="Delay each job by up to this many seconds.")] = 0
    reason: Reason = None


class ScheduleChangeIn(WhenIn):
    """Changes to a schedule. Omitted fields are unchanged. If code declares the schedule, you can
    change only `missed`, `missed_within`, `missed_limit` and `jitter`. `declared` restores the
    code's value.
    """

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
    """A timing to preview."""

    timezone: Zone = "UTC"
    after: Annotated[Instant | None, Field(description="Runs after this time (default: now).")] = (
        None
    )
    count: Annotated[int, Field(ge=1, le=100, description="How many runs.")] = 10


class BackfillIn(RequestModel):
    """A backfill's time range."""

    since: Annotated[
        Instant, Field(description="First run, inclusive.", examples=["2030-01-01T00:00:00Z"])
    ]
    until: Annotated[
        Instant, Field(description="Last run, inclusive.", examples=["2030-01-02T00:00:00Z"])
    ]
    rate: Rate = 500
    forgotten: Annotated[
        bool, Field(description="Include runs older than the recorded history.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only count the runs.")] = False
    reason: Reason = None


class ShiftOut(ResponseModel):
    """A clock change in the time zone (DST)."""

    at: datetime
    shown: Annotated[
        LocalTime, Field(description="The local time before the change, without an offset.")
    ]
    becomes: Annotated[LocalTime, Field(description="The local time after the change.")]


class RunOut(ResponseModel):
    """A future run."""

    fire_at: Annotated[datetime, Field(description="Time in UTC.")]
    local: Annotated[datetime, Field(description="Time in the schedule's time zone.")]
    run_at: Annotated[datetime, Field(description="When the job is due, including jitter.")]
    shift: Annotated[ShiftOut | None, Field(description="Set if clocks change on this day.")]
    moved: Annotated[bool, Field(description="Whether the clock change moved this run.")]
    paused: Annotated[bool, Field(description="Whether the schedule is paused at that time.")]


class RunListOut(ResponseModel):
    """Future runs, in order."""

    runs: list[RunOut]


class TickOut(ResponseModel):
    """A past run."""

    fire_at: Annotated[datetime, Field(description="When the run was due.")]
    outcome: TickOutcome
    reason: Annotated[
        TickReason | None, Field(description="Why it was skipped, late, or backfilled.")
    ]
    job_id: Annotated[IdOut | None, Field(description="The id of the job it enqueued.")]
    recorded_at: datetime


class TickListOut(ResponseModel):
    """A page of past runs, newest first."""

    ticks: list[TickOut]
    next_page_token: str | None


class ScheduleOut(ResponseModel):
    """A schedule."""

    name: str
    version: int
    state: ScheduleState
    words: Annotated[str, Field(description="When it runs, in English.")]
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
    set_here: Annotated[list[str], Field(description="Policies that an operator changed.")]
    program: Annotated[str | None, Field(description="The program whose code declares it.")]
    next_at: Annotated[datetime | None, Field(description="Next run.")]
    last_at: Annotated[datetime | None, Field(description="Last run.")]
    last_job_id: IdOut | None
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_reason: str | None
    retired_at: Annotated[datetime | None, Field(description="When its code stopped declaring it.")]
    created_at: datetime
    changed_at: datetime
    payload: Annotated[bool, Field(description="Whether you may see `args`.")]
    args: Any = None


class ScheduleShownOut(ScheduleOut):
    """A schedule with its next five and last ten runs."""

    next_runs: list[RunOut]
    past_runs: list[TickOut]


class ScheduleListedOut(ScheduleOut):
    """A schedule in a list."""

    past_runs: Annotated[
        list[TickOut], Field(description="Its last runs, if you set `ticks`.")
    ] = []
    last_state: Annotated[State | None, Field(description="The state of the last run's job.")] = (
        None
    )


class ScheduleListOut(ResponseModel):
    """A page of schedules, by name."""

    schedules: list[ScheduleListedOut]
    next_page_token: str | None
