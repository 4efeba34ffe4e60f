"""An installation at a glance, over the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.admin import AttentionCode, Level, TargetKind
from tenure.server.shapes.base import Answered
from tenure.server.shapes.figures import CountOut


class NumbersOut(Answered):
    """The numbers. Of those `running`, `expired` have a lease that is over; today began at midnight
    UTC; workers are counted that have not said that they end."""

    due: CountOut
    later: CountOut
    running: CountOut
    expired: CountOut
    retrying: CountOut
    held: CountOut
    failed: CountOut
    oldest_due: Annotated[float | None, Field(description="In seconds.")]
    completed_today: CountOut
    failed_day: CountOut
    workers_active: int
    workers_total: int


class TargetOut(Answered):
    """What a sentence is about; without a name it is all of the kind."""

    kind: TargetKind
    name: str | None


class AttentionOut(Answered):
    """One thing that needs attention, and a command that helps."""

    code: AttentionCode
    level: Level
    sentence: str
    command: str
    target: TargetOut


class CompletionOut(Answered):
    """A job that was completed lately, by its last attempt."""

    job_id: str
    queue: str
    task: str
    attempt: int
    started_at: datetime
    ended_at: datetime
    ran: Annotated[float, Field(description="In seconds.")]


class OverviewOut(Answered):
    """The installation at the database's time `now`. `words` sums it up, also when all is well;
    `attention` has the worst first, `left_out` says how many more there are."""

    now: datetime
    words: str
    numbers: NumbersOut
    attention: list[AttentionOut]
    left_out: int
    completions: list[CompletionOut]
