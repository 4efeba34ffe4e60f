"""Operations over the wire: one action on many jobs."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tenure.admin import ItemOutcome, OperationKind, OperationState, State
from tenure.server.shapes.base import Answered, Asked, Name, Reason


class FilterIn(Asked):
    """Which jobs: those that match all that is said, or those of `ids`."""

    state: State | None = None
    queue: Name | None = None
    task: Name | None = None
    signature: Annotated[str | None, Field(max_length=2000)] = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    ids: Annotated[list[str] | None, Field(max_length=10_000)] = None


class ChangesIn(Asked):
    """Where a move puts queued jobs; what is null stays as it is."""

    queue: Name | None = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: datetime | None = None


class OperationIn(Asked):
    """An operation to start."""

    kind: OperationKind
    filter: FilterIn
    changes: ChangesIn | None = None
    rate: Annotated[int, Field(ge=1, le=100_000, description="Jobs per second.")] = 500
    dry_run: bool = False
    reason: Reason = None


class OperationOut(Answered):
    """An operation as it is now. Of a dry run only `total` counts."""

    id: str
    kind: OperationKind
    state: OperationState
    queue: str | None
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


class OperationListOut(Answered):
    """Operations, newest first."""

    operations: list[OperationOut]
    next_page_token: str | None


class ItemOut(Answered):
    """One member, and what became of it; null until its chunk is done."""

    place: int
    job_id: str
    outcome: ItemOutcome | None


class ItemPageOut(Answered):
    """Members in their order."""

    items: list[ItemOut]
    next_page_token: str | None
