"""Operations over the wire: one action on many jobs, or the jobs of many ticks."""

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
    """Which jobs: those that match all that is said, or those of `ids`."""

    state: State | None = None
    queue: Name | None = None
    task: Name | None = None
    signature: Annotated[str | None, Field(max_length=2000)] = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    ended_after: Instant | None = None
    ended_before: Instant | None = None
    ids: Annotated[list[str] | None, Field(max_length=10_000)] = None


class ChangesIn(RequestModel):
    """Where a move puts queued jobs; what is null stays as it is."""

    queue: Name | None = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Instant | None = None


Rate = Annotated[int, Field(ge=1, le=10_000, description="Jobs per second.")]


class OperationIn(RequestModel):
    """An operation to start."""

    kind: Literal["retry", "cancel", "discard", "delete", "move"]
    filter: FilterIn | SelectorText
    changes: ChangesIn | None = None
    rate: Rate = 500
    dry_run: bool = False
    reason: Reason = None


class OperationOut(ResponseModel):
    """An operation as it is now; `schedule` is a backfill's. Of a dry run only `total` counts."""

    id: IdOut
    kind: OperationKind
    state: OperationState
    queue: str | None
    schedule: str | None
    rate: int
    total: int
    done: int
    outcomes: dict[str, int]
    actor: str
    source: str
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    filter: Annotated[
        str | None,
        Field(
            description="What it is for, as a selector without the values of keys, arguments and "
            "errors; null for chosen ids and for a backfill."
        ),
    ] = None


class OperationListOut(ResponseModel):
    """Operations, newest first."""

    operations: list[OperationOut]
    next_page_token: str | None


class ItemOut(ResponseModel):
    """One member, and what became of it; null until its chunk is done. Of a backfill it is the tick
    at `fire_at`, and has a job once one is made."""

    place: int
    job_id: IdOut | None
    fire_at: datetime | None
    outcome: ItemOutcome | None


class ItemPageOut(ResponseModel):
    """Members in their order."""

    items: list[ItemOut]
    next_page_token: str | None
