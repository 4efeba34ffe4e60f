"""Models for statistics and the overview."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.server.schemas.base import IdOut, ResponseModel, SecondsOut
from tenure.types import AlertCode, Level, TargetKind


class CountOut(ResponseModel):
    """A count that stops at a limit."""

    value: Annotated[int, Field(description="The count.")]
    more: Annotated[
        bool, Field(description="Whether counting stopped at `value`, so there are more.")
    ]


class SpreadOut(ResponseModel):
    """A distribution of durations in seconds. Quantiles are estimated from buckets."""

    count: int
    sum: SecondsOut
    p50: SecondsOut | None
    p95: SecondsOut | None
    p99: SecondsOut | None


class TallyOut(ResponseModel):
    """Attempts that ended in a time range."""

    since: datetime
    until: datetime
    outcomes: Annotated[dict[str, int], Field(description="Number of attempts by outcome.")]
    wait: Annotated[SpreadOut, Field(description="How long the jobs waited.")]
    run: Annotated[SpreadOut, Field(description="How long the attempts ran.")]


class StatsOut(ResponseModel):
    """Statistics over a time range."""

    whole: Annotated[TallyOut, Field(description="The whole range.")]
    steps: Annotated[list[TallyOut], Field(description="The range, step by step.")]
    counted_until: Annotated[
        datetime | None, Field(description="Attempts after this time are not counted yet.")
    ]


class GroupOut(ResponseModel):
    """One task's dead letters with the same error."""

    task: str
    signature: Annotated[
        str | None, Field(description="The error message without numbers and quoted text.")
    ]
    count: CountOut
    oldest_at: datetime
    newest_at: datetime
    hours: Annotated[
        list[int],
        Field(
            description="Failures in each of the last 24 hours, oldest first, among the newest 250."
        ),
    ]
    sample: Annotated[IdOut, Field(description="The newest job's id.")]
    error_type: str | None
    error_message: str | None


class GroupListOut(ResponseModel):
    """A page of groups, ordered by task and signature."""

    groups: list[GroupOut]
    next_page_token: str | None


class StandingOut(ResponseModel):
    """Why a job is in its current state."""

    code: Annotated[str, Field(description="A stable code.")]
    sentence: Annotated[str, Field(description="The explanation.")]
    until: Annotated[datetime | None, Field(description="When this will change.")]
    by: Annotated[str | None, Field(description="The worker, operator or session behind it.")]
    reason: Annotated[str | None, Field(description="The reason given.")]
    count: Annotated[CountOut | None, Field(description="How many jobs are ahead, or running.")]
    now: Annotated[datetime | None, Field(description="The time on the database's clock.")] = None
    renewed_at: Annotated[
        datetime | None,
        Field(description="When a running job's lease started or was last renewed."),
    ] = None
    renewals: Annotated[int | None, Field(description="How many times the lease was renewed.")] = (
        None
    )


class NumbersOut(ResponseModel):
    """The installation's key numbers."""

    due: Annotated[CountOut, Field(description="Jobs that can run now.")]
    scheduled: CountOut
    running: CountOut
    expired: Annotated[CountOut, Field(description="Running jobs whose lease has expired.")]
    retrying: Annotated[
        CountOut, Field(description="Queued jobs that have already had an attempt.")
    ]
    held: CountOut
    failed: Annotated[CountOut, Field(description="Dead letters.")]
    oldest_due: Annotated[
        SecondsOut | None, Field(description="How long the oldest due job has waited, in seconds.")
    ]
    completed_today: Annotated[CountOut, Field(description="Since midnight UTC.")]
    failed_day: Annotated[CountOut, Field(description="Failed permanently in the last 24 h.")]
    workers_active: Annotated[int, Field(description="Live workers that take jobs.")]
    workers_total: Annotated[
        int, Field(description="All workers that have not reported that they stopped.")
    ]


class TargetOut(ResponseModel):
    """An alert's subject."""

    kind: TargetKind
    name: Annotated[str | None, Field(description="`null`: all of this kind.")]


class AttentionOut(ResponseModel):
    """An alert."""

    code: Annotated[AlertCode, Field(description="A stable code.")]
    level: Annotated[Level, Field(description="How serious it is.")]
    sentence: Annotated[str, Field(description="The alert.")]
    command: Annotated[str, Field(description="A command or statement that helps.")]
    target: Annotated[TargetOut, Field(description="What the alert is about.")]


class CompletionOut(ResponseModel):
    """A recently completed job."""

    job_id: IdOut
    queue: str
    task: str
    attempt: int
    started_at: datetime
    ended_at: datetime
    ran: Annotated[SecondsOut, Field(description="Run time in seconds.")]


class OverviewOut(ResponseModel):
    """The installation at a glance."""

    now: Annotated[datetime, Field(description="The time on the database's clock.")]
    words: Annotated[str, Field(description="A one-sentence summary.")]
    numbers: NumbersOut
    attention: Annotated[list[AttentionOut], Field(description="Alerts, worst first.")]
    more: Annotated[int, Field(description="How many more alerts there are.")]
    completions: Annotated[list[CompletionOut], Field(description="Recently completed jobs.")]
