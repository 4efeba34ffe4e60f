"""Figures over the wire: what ended, how much waits, how dead letters group, where a job stands."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.server.shapes.base import Answered


class CountOut(Answered):
    """Exact, unless there are `more`."""

    value: int
    more: bool


class SpreadOut(Answered):
    """How long something took, in seconds; the quantiles are estimated from buckets."""

    count: int
    sum: float
    p50: float | None
    p95: float | None
    p99: float | None


class TallyOut(Answered):
    """The attempts that ended in a time: how, how long they had waited, how long they ran."""

    since: datetime
    until: datetime
    outcomes: dict[str, int]
    wait: SpreadOut
    run: SpreadOut


class StatsOut(Answered):
    """What ended over a time, whole and step by step; after `folded_to` nothing is counted yet."""

    whole: TallyOut
    steps: list[TallyOut]
    folded_to: datetime | None


class PaceOut(Answered):
    """How many attempts of a queue completed and failed, minute by minute."""

    queue: str
    completed: list[int]
    failed: list[int]


class PaceListOut(Answered):
    """The pace of each queue over the minutes from `since` up to `until`; after `folded_to` nothing
    is counted yet."""

    since: datetime
    until: datetime
    folded_to: datetime | None
    queues: list[PaceOut]


class DepthOut(Answered):
    """How much there is in a queue. `backlog` is what is due and not running, for autoscalers."""

    queue: str
    due: CountOut
    later: CountOut
    running: CountOut
    held: CountOut
    failed: CountOut
    backlog: int
    oldest_due_age: Annotated[float | None, Field(description="In seconds.")]


class DepthListOut(Answered):
    """Every known queue, the empty ones too."""

    queues: list[DepthOut]


class GroupOut(Answered):
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
    sample: str
    error_type: str | None
    error_message: str | None


class GroupListOut(Answered):
    """A page of groups, by task and signature."""

    groups: list[GroupOut]
    next_page_token: str | None


class StandingOut(Answered):
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
