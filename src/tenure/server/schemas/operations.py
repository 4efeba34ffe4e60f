"""Operation models: one action on many jobs, or a backfill."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tenure.admin import State
from tenure.server.schemas.base import (
    IdOut,
    Instant,
    Name,
    Reason,
    RequestModel,
    ResponseModel,
    SelectorText,
)
from tenure.types import ItemOutcome, OperationKind, OperationState


class FilterIn(RequestModel):
    """Which jobs to act on: those that match all given fields, or those in `ids`."""

    state: State | None = None
    queue: Name | None = None
    task: Name | None = None
    signature: Annotated[
        str | None, Field(max_length=2000, description="The error's signature.")
    ] = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    ended_after: Instant | None = None
    ended_before: Instant | None = None
    ids: Annotated[list[str] | None, Field(max_length=10_000)] = None


class ChangesIn(RequestModel):
    """The fields that a move changes. Omitted fields are unchanged."""

    queue: Name | None = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Instant | None = None


Rate = Annotated[int, Field(ge=1, le=10_000, description="Jobs per second.")]


class OperationIn(RequestModel):
    """An operation to start."""

    kind: Annotated[
        Literal["retry", "cancel", "discard", "delete", "move"],
        Field(description="What to do with the jobs."),
    ]
    filter: Annotated[
        FilterIn | SelectorText,
        Field(
            description="Which jobs to act on: an object or a selector.",
            examples=["state:failed queue:mail"],
        ),
    ]
    changes: Annotated[ChangesIn | None, Field(description="Only for `move`.")] = None
    rate: Rate = 500
    dry_run: Annotated[bool, Field(description="Only count the jobs.")] = False
    reason: Reason = None


class OperationOut(ResponseModel):
    """An operation."""

    id: IdOut
    kind: OperationKind
    state: OperationState
    queue: Annotated[str | None, Field(description="`null`: all queues.")]
    schedule: Annotated[str | None, Field(description="The backfill's schedule.")]
    rate: int
    total: Annotated[int, Field(description="Number of jobs.")]
    done: Annotated[int, Field(description="Number of jobs processed.")]
    outcomes: Annotated[dict[str, int], Field(description="Number of jobs by result.")]
    actor: str
    source: str
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    filter: Annotated[
        str | None,
        Field(
            description="The selector, without key, argument and error values. `null` for ids and "
            "backfills."
        ),
    ] = None
    waiting: Annotated[
        int, Field(description="Number of jobs that an erasure waits for: they still run.")
    ] = 0


class ErasureIn(RequestModel):
    """What to erase."""

    filter: Annotated[
        SelectorText,
        Field(
            description="A selector with a `tag`, a `key`, an argument or an `id`. It may have a "
            "`queue` and a `task`.",
            examples=["tag:customer:7"],
        ),
    ]
    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="The reason, for the audit log. It must not contain a selected value.",
        ),
    ]
    rate: Rate = 500
    dry_run: Annotated[bool, Field(description="Only count the rows.")] = False


class ErasureOut(ResponseModel):
    """An erasure that was started."""

    operation: OperationOut
    rows: Annotated[
        dict[str, int], Field(description="Number of rows that belong to the jobs, by table.")
    ]


class OperationListOut(ResponseModel):
    """Operations, newest first."""

    operations: list[OperationOut]
    next_page_token: str | None


class ItemOut(ResponseModel):
    """One job in an operation. In a backfill, one of the schedule's runs."""

    place: Annotated[int, Field(description="Position in the operation.")]
    job_id: Annotated[
        IdOut | None, Field(description="The job. In a backfill, `null` until it is enqueued.")
    ]
    fire_at: Annotated[datetime | None, Field(description="In a backfill, the run's time.")]
    outcome: Annotated[
        ItemOutcome | None, Field(description="The result. `null` until the job is processed.")
    ]


class ItemPageOut(ResponseModel):
    """A page of an operation's jobs."""

    items: list[ItemOut]
    next_page_token: str | None
