"""Jobs over the wire."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

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
from tenure.types import ItemOutcome, OperationKind

Priority = Annotated[int | None, Field(ge=0, le=9, description="9 is the most urgent.")]
Attempts = Annotated[int | None, Field(ge=1, le=32_767)]


class JobOptionsIn(RequestModel):
    """The options of a job. What is not given is the queue's, the settings', or built in."""

    args: Annotated[dict[str, Any], Field(description="By name; at most 256 KiB of JSON.")] = {}
    queue: Name = "default"
    priority: Priority = None
    max_attempts: Attempts = None
    timeout: Seconds | None = None
    expires_in: Seconds | None = None
    tags: Annotated[list[Name], Field(max_length=20)] = []


class JobIn(JobOptionsIn):
    """A job to enqueue. What is not given is the queue's, the settings', or built in."""

    task: Name
    delay: Annotated[Seconds | None, Field(description="Seconds; not with run_at.")] = None
    run_at: Annotated[Instant | None, Field(description="With a time zone.")] = None
    key: Annotated[str | None, Field(min_length=1, max_length=400)] = None
    key_for: Seconds | None = None
    lease: Seconds | None = None
    target: Annotated[int | None, Field(ge=1, lt=2**31)] = None


class EnqueuedOut(ResponseModel):
    """The job; `created` is false where its key already had one."""

    id: IdOut
    created: bool


class JobsIn(RequestModel):
    """Several jobs to enqueue: all of them, or none."""

    jobs: Annotated[list[JobIn], Field(min_length=1, max_length=1000)]


class JobsEnqueuedOut(ResponseModel):
    """The jobs, in the order asked. `repeated`: this is the first answer to the idempotency key."""

    jobs: list[EnqueuedOut]
    repeated: bool


class JobOut(ResponseModel):
    """A job as it is now. `payload` says whether its arguments, result and reports are shown."""

    id: IdOut
    state: State
    queue: str
    task: str
    priority: int
    attempt: int
    max_attempts: int
    losses: int
    worker_losses: int
    deaths: int
    fence: IdOut
    run_at: datetime
    created_at: datetime
    held: bool
    cancel_requested: bool
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    ended_at: datetime | None
    done_reason: str | None
    items: int
    payload: bool
    args: Any = None
    result: Any = None
    cursor: Any = None
    progress: Any = None
    key: str | None = None
    tags: list[str] = []
    worker: Annotated[IdOut | None, Field(description="Who holds it, or held it last.")] = None
    traceparent: str | None = None
    last_outcome: Annotated[
        str | None, Field(description="How its last attempt ended, while it has not succeeded.")
    ] = None
    error_type: Annotated[str | None, Field(description="That attempt's error.")] = None
    error_message: str | None = None


class SearchOut(ResponseModel):
    """How far was searched: so many rows, at most `window`. `bounded`: there are
    more, which the next page searches, or this one when it is widened."""

    searched: int
    bounded: bool
    window: int
    took: Annotated[SecondsOut, Field(description="How long the database needed, in seconds.")]


class JobListOut(ResponseModel):
    """A page, newest first; it may come short. There is more as long as there is a token. `search`
    is null where one state was listed."""

    jobs: list[JobOut]
    next_page_token: str | None
    search: SearchOut | None = None


class AttemptOut(ResponseModel):
    """One ended running period."""

    fence: IdOut
    attempt: int
    outcome: str
    late: bool
    due_at: datetime
    started_at: datetime
    ended_at: datetime
    renewals: int
    settle_repeats: int
    payload: bool
    error_type: str | None
    error_signature: str | None = None
    error_message: str | None = None
    error_trace: str | None = None
    log: str | None = None
    refused_result: Any = None
    worker: Annotated[IdOut | None, Field(description="Who held it.")] = None


class AttemptListOut(ResponseModel):
    """The attempts, oldest first."""

    attempts: list[AttemptOut]


class ItemListOut(ResponseModel):
    """Result items by key; there may be more above the last key."""

    items: dict[str, Any]


class MembershipOut(ResponseModel):
    """An operation that the job is or was a member of, and what became of it there."""

    operation_id: IdOut
    kind: OperationKind
    outcome: ItemOutcome | None
    actor: str
    source: str
    reason: str | None
    created_at: datetime


class MembershipListOut(ResponseModel):
    """Operations, newest first."""

    operations: list[MembershipOut]


class MoveIn(RequestModel):
    """Where a queued job is put; what is null stays as it is."""

    queue: Name | None = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Instant | None = None
    reason: Reason = None
