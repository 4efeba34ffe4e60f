"""Models for queues, workers, settings, the audit log, access tokens and sessions."""

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
from tenure.types import Health, Role, Scope, SessionState, TokenState, WorkerState

LIFETIME_SECONDS = 90 * 86_400.0

Quotas = dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]


class QuotaIn(RequestModel):
    """New quotas. They replace all former ones."""

    quotas: Annotated[
        Quotas,
        Field(max_length=20, description="Quotas by name.", examples=[{"live_jobs": 1000}]),
    ]
    reason: Reason = None


class QueueOut(ResponseModel):
    """A queue's settings. The name `*` stands for all queues together."""

    name: str
    paused_at: datetime | None
    paused_until: Annotated[datetime | None, Field(description="`null`: until someone resumes it.")]
    paused_by: str | None
    paused_reason: str | None
    max_running: Annotated[int | None, Field(description="Concurrency limit.")]
    lease: Annotated[SecondsOut | None, Field(description="Lease length in this queue.")]
    max_attempts: Annotated[
        int | None, Field(description="Maximum attempts for jobs in this queue.")
    ]
    quotas: Annotated[Quotas, Field(description="Quotas by name.")]


class CountedQueueOut(QueueOut):
    """A queue with its settings and counts."""

    due: Annotated[CountOut, Field(description="Jobs that can run now.")]
    scheduled: Annotated[CountOut, Field(description="Jobs due later.")]
    running: Annotated[CountOut, Field(description="Running jobs.")]
    held: Annotated[CountOut, Field(description="Jobs that an operator put on hold.")]
    failed: Annotated[CountOut, Field(description="Dead letters.")]
    backlog: Annotated[int, Field(description="Number of due jobs, for autoscalers.")]
    oldest_due_age: Annotated[
        float | None, Field(description="How long the oldest due job has waited, in seconds.")
    ]


class QueueListOut(ResponseModel):
    """All known queues, including empty ones."""

    queues: list[CountedQueueOut]
    every_queue: Annotated[QueueOut | None, Field(description="Settings for all queues together.")]


class QueueThroughputOut(ResponseModel):
    """A queue's attempts per minute, oldest first."""

    queue: str
    completed: list[int]
    failed: list[int]


class ThroughputOut(ResponseModel):
    """Each queue's throughput by minute."""

    since: datetime
    until: datetime
    counted_until: Annotated[
        datetime | None, Field(description="Attempts after this time are not counted yet.")
    ]
    queues: list[QueueThroughputOut]


class PauseIn(RequestModel):
    """How long to pause."""

    until: Annotated[
        Instant | None, Field(description="When the pause ends. `null`: when the queue is resumed.")
    ] = None
    reason: Reason = None


class LimitIn(RequestModel):
    """A concurrency limit."""

    max_running: Annotated[
        int | None,
        Field(
            ge=0,
            lt=2**31,
            description="How many jobs may run concurrently. `null` removes the limit.",
            examples=[5],
        ),
    ]
    reason: Reason = None


class ConfigureIn(RequestModel):
    """Defaults for a queue's jobs. `null` falls back to the installation's settings."""

    lease: Annotated[Seconds | None, Field(description="Lease length in seconds.", examples=[60])]
    max_attempts: Annotated[
        int | None, Field(ge=1, le=32_767, description="How many times to try a job.", examples=[5])
    ]
    reason: Reason = None


class BlockedOut(ResponseModel):
    """A blocked event loop."""

    seconds: Annotated[SecondsOut, Field(description="How long it has been blocked.")]
    stack: Annotated[str, Field(description="Where it is blocked.")]


class WorkerOut(ResponseModel):
    """A worker, as of its last heartbeat."""

    id: IdOut
    name: str
    host: str
    pid: int
    version: str
    language: Annotated[str, Field(description="Programming language.")]
    queues: list[str]
    slots: Annotated[int, Field(description="How many jobs it can run concurrently.")]
    running: Annotated[int, Field(description="How many jobs it is running.")]
    state: Annotated[WorkerState, Field(description="The state the worker reported.")]
    drain_requested: Annotated[bool, Field(description="Whether it has been asked to stop.")]
    started_at: datetime
    last_heartbeat_at: datetime
    heartbeat_age: Annotated[SecondsOut, Field(description="Seconds since the last heartbeat.")]
    health: Annotated[
        Health, Field(description="Its state, taking the heartbeat's age into account.")
    ]
    blocked: Annotated[BlockedOut | None, Field(description="Set if its event loop is blocked.")]
    unknown_tasks: Annotated[
        list[str], Field(description="Tasks it received jobs for but does not know.")
    ]
    memory: Annotated[int | None, Field(description="Memory in bytes.")]


class WorkerListOut(ResponseModel):
    """All known workers."""

    workers: list[WorkerOut]


class SettingOut(ResponseModel):
    """A setting."""

    name: str
    value: Annotated[Any, Field(description="The current value.")]
    built_in: Annotated[Any, Field(description="The default.")]
    changed: Annotated[bool, Field(description="Whether it differs from the default.")]


class SettingListOut(ResponseModel):
    """All settings you can change at run time."""

    settings: list[SettingOut]


class SettingIn(RequestModel):
    """A new setting value."""

    value: Annotated[Any, Field(description="The new value.", examples=[45])]
    reason: Reason = None


class AuditOut(ResponseModel):
    """One change."""

    id: IdOut
    at: datetime
    actor: Annotated[str, Field(description="Who made the change.")]
    source: Annotated[
        str,
        Field(
            description="Where it came from: `page`, `http`, `cli`, `python`, `code` or `server`."
        ),
    ]
    action: Annotated[str, Field(description="What was done, for example `queue.pause`.")]
    target: Annotated[str, Field(description="What was changed, for example `queue:mail`.")]
    reason: str | None
    address: Annotated[
        str | None, Field(description="The client's address, if it came over HTTP.")
    ] = None
    before: Annotated[Any, Field(description="The values before the change.")] = None
    after: Annotated[Any, Field(description="The values after the change.")] = None


class AuditListOut(ResponseModel):
    """A page of changes, newest first."""

    changes: list[AuditOut]
    searched: Annotated[int, Field(description="Number of rows searched for this page.")]
    next_page_token: str | None


class TokenIn(RequestModel):
    """An access token to create. Each scope applies to every queue that matches a pattern."""

    name: Annotated[Name, Field(description="Who or what uses it.", examples=["ci"])]
    scopes: Annotated[
        list[Scope],
        Field(
            max_length=10,
            description="What it allows. Required without `role`.",
            examples=[["enqueue", "read"]],
        ),
    ] = []
    role: Annotated[
        Role | None, Field(description="A bundle of scopes to add.", examples=["operator"])
    ] = None
    queues: Annotated[
        list[Name], Field(min_length=1, max_length=100, description="Queue name patterns.")
    ] = ["*"]
    tasks: Annotated[
        list[Name],
        Field(min_length=1, max_length=100, description="Patterns for tasks it may enqueue."),
    ] = ["*"]
    quotas: Annotated[Quotas, Field(description="Quotas by name.")] = {}
    expires_in: Annotated[
        Seconds | None,
        Field(
            description="Lifetime in seconds. `null`: it never expires. It ends with your own "
            "token at the latest."
        ),
    ] = LIFETIME_SECONDS
    reason: Reason = None


class TokenOut(ResponseModel):
    """An access token, without its secret."""

    id: IdOut
    name: str
    hint: Annotated[str, Field(description="The first characters of the secret.")]
    state: TokenState
    scopes: list[Scope]
    queues: list[str]
    tasks: Annotated[list[str], Field(description="Patterns for tasks it may enqueue.")]
    quotas: Annotated[Quotas, Field(description="Quotas by name.")]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="Updated about once a minute.")]
    revoked_at: datetime | None
    revoked_by: str | None
    created_by_token: Annotated[
        IdOut | None, Field(description="The token that created it. They are revoked together.")
    ]


class RevokeTokenIn(RequestModel):
    """How to revoke a token."""

    keep_children: Annotated[
        bool, Field(description="Keep the tokens that it created (default: revoke them too).")
    ] = False
    reason: Reason = None


class SessionOut(ResponseModel):
    """A dashboard session."""

    id: IdOut
    state: SessionState
    name: Annotated[str, Field(description="The name of the token or the user.")]
    provider: Annotated[str, Field(description="How it was opened: `token`, `link` or `proxy`.")]
    token_id: Annotated[IdOut | None, Field(description="The access token it belongs to.")]
    scopes: list[Scope]
    queues: list[str]
    created_at: datetime
    seen_at: Annotated[datetime, Field(description="Updated about once a minute.")]
    ends_at: Annotated[datetime, Field(description="When it ends if it is not used.")]
    address: str | None
    user_agent: str | None
    ended_at: datetime | None
    ended_by: str | None


class SessionListOut(ResponseModel):
    """Dashboard sessions, newest first."""

    sessions: list[SessionOut]
    next_page_token: str | None


class TokenCreatedOut(ResponseModel):
    """A new access token."""

    secret: Annotated[str, Field(description="The secret. It is shown only once.")]
    token: Annotated[TokenOut, Field(description="The token.")]


class TokenListOut(ResponseModel):
    """Access tokens, newest first."""

    tokens: list[TokenOut]
    next_page_token: str | None
