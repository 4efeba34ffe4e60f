"""Queues, workers, settings, the audit and access tokens over the wire."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

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
from tenure.server.schemas.stats import CountOut
from tenure.types import Health, Scope, TokenState, WorkerState


class QueueOut(ResponseModel):
    """What operators have set for a queue; `*` speaks for all of them."""

    name: str
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_reason: str | None
    max_running: int | None
    lease: Annotated[SecondsOut | None, Field(description="In seconds.")]
    max_attempts: int | None


class CountedQueueOut(QueueOut):
    """A queue: what operators have set for it, and how much there is in it. `backlog` is what is
    due and not running, for autoscalers."""

    due: CountOut
    scheduled: CountOut
    running: CountOut
    held: CountOut
    failed: CountOut
    backlog: int
    oldest_due_age: Annotated[float | None, Field(description="In seconds.")]


class QueueListOut(ResponseModel):
    """Every known queue, the empty ones too; `every_queue` is what is set for all of them."""

    queues: list[CountedQueueOut]
    every_queue: QueueOut | None


class QueueThroughputOut(ResponseModel):
    """How many attempts of a queue completed and failed, minute by minute."""

    queue: str
    completed: list[int]
    failed: list[int]


class ThroughputOut(ResponseModel):
    """The throughput of each queue over the minutes from `since` up to `until`. Nothing is counted
    yet after `counted_until`."""

    since: datetime
    until: datetime
    counted_until: datetime | None
    queues: list[QueueThroughputOut]


class PauseIn(RequestModel):
    """Until when, and why; without a time, until resumed."""

    until: Instant | None = None
    reason: Reason = None


class LimitIn(RequestModel):
    """How many jobs of a queue may run at once; null takes the limit away."""

    max_running: Annotated[int | None, Field(ge=0, lt=2**31)]
    reason: Reason = None


class ConfigureIn(RequestModel):
    """A queue's own lease and attempts; null leaves them to the settings."""

    lease: Seconds | None
    max_attempts: Annotated[int | None, Field(ge=1, le=32_767)]
    reason: Reason = None


class BlockedOut(ResponseModel):
    """Since how long a worker's event loop has not moved, and where it stands."""

    seconds: SecondsOut
    stack: str


class WorkerOut(ResponseModel):
    """A worker as it was last heard of. `health` is how it fares, by that and by when it was;
    `memory` is in bytes."""

    id: IdOut
    name: str
    host: str
    pid: int
    version: str
    language: str
    queues: list[str]
    slots: int
    running: int
    state: WorkerState
    drain_requested: bool
    started_at: datetime
    last_heartbeat_at: datetime
    heartbeat_age: SecondsOut
    health: Health
    blocked: BlockedOut | None
    unknown_tasks: list[str]
    memory: int | None


class WorkerListOut(ResponseModel):
    """All known workers."""

    workers: list[WorkerOut]


class SettingOut(ResponseModel):
    """A setting as it is in force."""

    name: str
    value: Any
    built_in: Any
    changed: bool


class SettingListOut(ResponseModel):
    """All settings that can be changed at run time."""

    settings: list[SettingOut]


class SettingIn(RequestModel):
    """A setting's new value."""

    value: Any
    reason: Reason = None


class AuditOut(ResponseModel):
    """One change to one target."""

    id: IdOut
    at: datetime
    actor: str
    source: str
    action: str
    target: str
    reason: str | None
    before: Any = None
    after: Any = None


class AuditListOut(ResponseModel):
    """Changes, newest first, found among some that were `searched`. There is more as long as there
    is a token."""

    changes: list[AuditOut]
    searched: int
    next_page_token: str | None


class TokenIn(RequestModel):
    """An access token to make: each of the scopes, in each queue that a pattern matches."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=10)]
    queues: Annotated[list[Name], Field(min_length=1, max_length=100)] = ["*"]
    expires_in: Seconds | None = None
    reason: Reason = None


class TokenOut(ResponseModel):
    """An access token, without its secret; `hint` is how that begins."""

    id: IdOut
    name: str
    hint: str
    state: TokenState
    scopes: list[Scope]
    queues: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


class TokenCreatedOut(ResponseModel):
    """A new access token. The secret is told now, and never again."""

    secret: str
    token: TokenOut


class TokenListOut(ResponseModel):
    """Access tokens, newest first."""

    tokens: list[TokenOut]
    next_page_token: str | None
