"""Models of stats and the overview."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.server.schemas.base import IdOut, ResponseModel, SecondsOut
from tenure.types import AlertCode, Level, TargetKind


class CountOut(ResponseModel):
    """Exact, unless there are `more`."""

    value: int
    more: bool


class SpreadOut(ResponseModel):
    """How long something took, in seconds; the quantiles are estimated from buckets."""

    count: int
    sum: SecondsOut
    p50: SecondsOut | None
    p95: SecondsOut | None
    p99: SecondsOut | None


class TallyOut(ResponseModel):
    """The attempts that ended in a time: how, how long they had waited, how long they ran."""

    since: datetime
    until: datetime
    outcomes: dict[str, int]
    wait: SpreadOut
    run: SpreadOut


class StatsOut(ResponseModel):
    """What ended over a time, whole and step by step; after `counted_until` nothing is counted."""

    whole: TallyOut
    steps: list[TallyOut]
    counted_until: datetime | None


class GroupOut(ResponseModel):
    """Dead letters of one task with one error; `sample` is the one that ended last."""

    task: str
    signature: str | None
    count: CountOut
    oldest_at: datetime
    newest_at: datetime
    hours: Annotated[
        list[int],
        Field(
            description="How many of the newest 250 ended in each of the last 24 hours, the "
            "oldest first."
        ),
    ]
    sample: IdOut
    error_type: str | None
    error_message: str | None


class GroupListOut(ResponseModel):
    """A page of groups, by task and signature."""

    groups: list[GroupOut]
    next_page_token: str | None


class StandingOut(ResponseModel):
    """Where a job stands: a stable code, and a sentence."""

    code: str
    sentence: str
    until: datetime | None
    by: str | None
    reason: str | None
    count: CountOut | None
    now: Annotated[datetime | None, Field(description="The database's clock.")] = None
    renewed_at: Annotated[
        datetime | None, Field(description="When a running job's lease began, or was renewed.")
    ] = None
    renewals: int | None = None


class NumbersOut(ResponseModel):
    """The numbers. Of those `running`, `expired` have a lease that is over; today began at midnight
    UTC; workers are counted that have not said that they end."""

    due: CountOut
    scheduled: CountOut
    running: CountOut
    expired: CountOut
    retrying: CountOut
    held: CountOut
    failed: CountOut
    oldest_due: Annotated[SecondsOut | None, Field(description="In seconds.")]
    completed_today: CountOut
    failed_day: CountOut
    workers_active: int
    workers_total: int


class TargetOut(ResponseModel):
    """What a sentence is about; without a name it is all of the kind."""

    kind: TargetKind
    name: str | None


class AttentionOut(ResponseModel):
    """One thing that needs attention, and a command that helps."""

    code: AlertCode
    level: Level
    sentence: str
    command: str
    target: TargetOut


class CompletionOut(ResponseModel):
    """A job that was completed lately, by its last attempt."""

    job_id: IdOut
    queue: str
    task: str
    attempt: int
    started_at: datetime
    ended_at: datetime
    ran: Annotated[SecondsOut, Field(description="In seconds.")]


class OverviewOut(ResponseModel):
    """The installation at the database's time `now`. `words` sums it up, also when all is well;
    `attention` has the worst first, `more` says how many more there are."""

    now: datetime
    words: str
    numbers: NumbersOut
    attention: list[AttentionOut]
    more: int
    completions: list[CompletionOut]
