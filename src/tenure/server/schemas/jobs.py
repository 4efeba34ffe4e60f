"""Job models."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tenure.admin import State
from tenure.kinds import KINDS, TASKS, definition
from tenure.server.schemas.base import (
    IdOut,
    Instant,
    KeyFor,
    Name,
    Reason,
    RequestModel,
    ResponseModel,
    Seconds,
    SecondsOut,
)
from tenure.types import ItemOutcome, OperationKind

Priority = Annotated[
    int | None, Field(ge=0, le=9, description="0 to 9, where 9 is the most urgent.")
]
Attempts = Annotated[
    int | None, Field(ge=1, le=32_767, description="How many times to try the job.")
]


class JobOptionsIn(RequestModel):
    """Job options. Omitted options come from the queue, the settings or the defaults."""

    args: Annotated[
        dict[str, Any],
        Field(description="Arguments by name, at most 256 KiB of JSON.", examples=[{"to": "ada"}]),
    ] = {}
    queue: Annotated[Name, Field(description="The queue.", examples=["mail"])] = "default"
    priority: Priority = None
    max_attempts: Attempts = None
    timeout: Annotated[
        Seconds | None, Field(description="How long an attempt may run, in seconds.")
    ] = None
    expires_in: Annotated[
        Seconds | None,
        Field(description="Cancel the job if it has not started after this many seconds."),
    ] = None
    tags: Annotated[list[Name], Field(max_length=20, description="Labels to search for.")] = []


class KeyIn(RequestModel):
    """A deduplication key to free."""

    task: Annotated[Name, Field(description="The task's name.", examples=["billing.charge"])]
    key: Annotated[
        str, Field(min_length=1, max_length=400, description="The key.", examples=["invoice-7"])
    ]
    reason: Reason = None


class WorkIn(JobOptionsIn):
    """What a job does: exactly one of `task`, `http`, `shell` and `grpc`."""

    task: Annotated[Name, Field(description="The task's name.", examples=["mail.send"])] = ""
    http: Annotated[
        dict[str, Any] | None,
        Field(
            description="An HTTP request instead of a task, if the installation enables them.",
            examples=[{"method": "POST", "url": "https://example.com/hook", "json": {"order": 7}}],
        ),
    ] = None
    shell: Annotated[
        dict[str, Any] | None,
        Field(description="A command instead of a task.", examples=[{"argv": ["/bin/true"]}]),
    ] = None
    grpc: Annotated[
        dict[str, Any] | None,
        Field(
            description="A gRPC call instead of a task.",
            examples=[{"target": "billing:50051", "method": "billing.Invoices/Create"}],
        ),
    ] = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        """Turn a kind of work into its task, arguments and queue."""
        given = {kind: value for kind in KINDS if (value := getattr(self, kind)) is not None}
        if len(given) + bool(self.task) != 1 or (given and self.args):
            raise ValueError(f"give exactly one of task (with args), {', '.join(KINDS)}")
        for kind, arguments in given.items():
            self.task, self.args = KINDS[kind].task, arguments
        if self.task in TASKS and "queue" not in self.model_fields_set:
            self.queue = definition(self.task).queue
        return self


class JobIn(WorkIn):
    """A job to enqueue. Omitted options come from the queue, the settings or the defaults."""

    delay: Annotated[
        Seconds | None,
        Field(description="Run this many seconds from now. Cannot be combined with `run_at`."),
    ] = None
    run_at: Annotated[Instant | None, Field(description="Run at this time.")] = None
    key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=400,
            description="Deduplication key. While a job holds it, no second job is created.",
        ),
    ] = None
    key_for: Annotated[
        KeyFor | None,
        Field(description="Keep the key for this many seconds after the job ends, or `forever`."),
    ] = None
    lease: Annotated[Seconds | None, Field(description="Lease length in seconds.")] = None
    target: Annotated[
        int | None,
        Field(ge=1, lt=2**31, description="Complete the job once it has reported this many items."),
    ] = None


NewArgs = Annotated[
    dict[str, Any] | None,
    Field(
        description="All new arguments by name, at most 256 KiB of JSON. Also needs `enqueue`.",
        examples=[{"to": "ada"}],
    ),
]


class EditIn(RequestModel):
    """Changes to a queued job or a dead letter. Omitted fields are unchanged."""

    args: NewArgs = None
    priority: Priority = None
    run_at: Annotated[Instant | None, Field(description="New due time of a queued job.")] = None
    max_attempts: Attempts = None
    timeout: Annotated[
        Seconds | None, Field(description="How long an attempt may run, in seconds.")
    ] = None
    tags: Annotated[
        list[Name] | None, Field(max_length=20, description="All new tags. `[]` removes them.")
    ] = None
    reason: Reason = None


class RetryIn(RequestModel):
    """How to retry a dead letter."""

    args: NewArgs = None
    reason: Reason = None


class RerunIn(RequestModel):
    """How to run an ended job again."""

    args: NewArgs = None
    keep_key: Annotated[
        bool, Field(description="Give the new job the ended job's deduplication key, if free.")
    ] = False
    reason: Reason = None


class RerunOut(ResponseModel):
    """The new job."""

    result: Annotated[str, Field(description="`enqueued`.")]
    id: Annotated[IdOut, Field(description="The new job's id.")]


class EnqueuedOut(ResponseModel):
    """The enqueued job."""

    id: Annotated[IdOut, Field(description="The job's id.")]
    created: Annotated[
        bool, Field(description="`false` if another job holds the key. `id` is then its id.")
    ]


class JobsIn(RequestModel):
    """Jobs to enqueue in one transaction."""

    jobs: Annotated[
        list[JobIn],
        Field(
            min_length=1,
            max_length=1000,
            description="The jobs.",
            examples=[[{"task": "mail.send", "args": {"to": "ada"}}]],
        ),
    ]


class JobsEnqueuedOut(ResponseModel):
    """The jobs, in request order."""

    jobs: Annotated[list[EnqueuedOut], Field(description="The jobs.")]
    repeated: Annotated[
        bool,
        Field(
            description="Whether this is the stored response to an earlier request with this key."
        ),
    ]


class JobOut(ResponseModel):
    """A job."""

    id: IdOut
    state: State
    queue: str
    task: str
    priority: int
    attempt: Annotated[
        int, Field(description="The current or last attempt's number, or 0 before the first.")
    ]
    max_attempts: int
    losses: Annotated[
        int,
        Field(description="How many times its own process died since its last progress report."),
    ]
    worker_losses: Annotated[
        int, Field(description="How many times its worker died since its last progress report.")
    ]
    deaths: Annotated[int, Field(description="Total attempts lost, for any reason.")]
    fence: Annotated[IdOut, Field(description="The current or last attempt's fencing token.")]
    run_at: Annotated[datetime, Field(description="When the job is due.")]
    created_at: datetime
    held: Annotated[bool, Field(description="Whether an operator put it on hold.")]
    cancel_requested: Annotated[bool, Field(description="Whether its worker was asked to stop it.")]
    claimed_at: Annotated[datetime | None, Field(description="When the current attempt started.")]
    lease_expires_at: Annotated[
        datetime | None, Field(description="When the lease expires unless it is renewed.")
    ]
    ended_at: datetime | None
    done_reason: Annotated[str | None, Field(description="Why it ended.")]
    items: Annotated[int, Field(description="Number of items.")]
    payload: Annotated[
        bool,
        Field(description="Whether you may see `args`, `result`, `cursor`, `progress` and `key`."),
    ]
    args: Annotated[Any, Field(description="Arguments by name.")] = None
    result: Annotated[Any, Field(description="The handler's return value.")] = None
    cursor: Annotated[Any, Field(description="Where the next attempt resumes.")] = None
    progress: Annotated[Any, Field(description="The last progress report.")] = None
    key: Annotated[str | None, Field(description="Deduplication key.")] = None
    tags: list[str] = []
    rerun_of: Annotated[
        IdOut | None, Field(description="The ended job that this one runs again.")
    ] = None
    worker: Annotated[
        IdOut | None, Field(description="The id of the worker running it, or that ran it last.")
    ] = None
    traceparent: Annotated[str | None, Field(description="W3C trace context from the enqueue.")] = (
        None
    )
    last_outcome: Annotated[
        str | None, Field(description="Its last attempt's outcome, until the job completes.")
    ] = None
    error_type: Annotated[str | None, Field(description="That attempt's error type.")] = None
    error_message: Annotated[str | None, Field(description="That attempt's error message.")] = None


class SearchOut(ResponseModel):
    """How much was searched."""

    searched: Annotated[int, Field(description="Number of rows searched.")]
    bounded: Annotated[
        bool,
        Field(description="Whether rows remain to be searched. Get the next page, or set `widen`."),
    ]
    window: Annotated[int, Field(description="Maximum number of rows searched per page.")]
    took: Annotated[SecondsOut, Field(description="How long the database query took, in seconds.")]


class JobListOut(ResponseModel):
    """A page of jobs, newest first."""

    jobs: Annotated[list[JobOut], Field(description="The jobs.")]
    next_page_token: Annotated[str | None, Field(description="The next page's token.")]
    search: Annotated[SearchOut | None, Field(description="`null` if you listed one state.")] = None


class AttemptOut(ResponseModel):
    """An attempt that has ended."""

    fence: Annotated[IdOut, Field(description="Fencing token.")]
    attempt: Annotated[int, Field(description="The attempt's number.")]
    outcome: Annotated[str, Field(description="How it ended.")]
    late: Annotated[
        bool,
        Field(description="Whether the result was accepted even though the lease had expired."),
    ]
    due_at: Annotated[datetime, Field(description="When the attempt was due.")]
    started_at: datetime
    ended_at: datetime
    renewals: Annotated[int, Field(description="How many times the lease was renewed.")]
    settle_repeats: Annotated[int, Field(description="How many times the same result was resent.")]
    payload: Annotated[
        bool,
        Field(description="Whether you may see error texts, the log and rejected results."),
    ]
    error_type: str | None
    error_signature: Annotated[
        str | None, Field(description="The message without numbers and quoted text, for grouping.")
    ] = None
    error_message: str | None = None
    error_trace: str | None = None
    log: Annotated[str | None, Field(description="The last 16 KiB of the log.")] = None
    refused_result: Annotated[
        Any, Field(description="A result that arrived too late and was rejected.")
    ] = None
    worker: Annotated[IdOut | None, Field(description="The id of the worker that ran it.")] = None


class AttemptListOut(ResponseModel):
    """Attempts, oldest first."""

    attempts: list[AttemptOut]


class ItemListOut(ResponseModel):
    """Items by key. Pass the last key as `after` to get more."""

    items: dict[str, Any]


class MembershipOut(ResponseModel):
    """An operation that included the job, and its result for this job."""

    operation_id: IdOut
    kind: OperationKind
    outcome: Annotated[
        ItemOutcome | None,
        Field(description="The result for this job. `null` until it is processed."),
    ]
    actor: Annotated[str, Field(description="Who started it.")]
    source: Annotated[
        str, Field(description="Where it was started: `page`, `http`, `cli` or `python`.")
    ]
    reason: str | None
    created_at: datetime


class MembershipListOut(ResponseModel):
    """Operations, newest first."""

    operations: list[MembershipOut]


class MoveIn(RequestModel):
    """Changes to a queued job. Omitted fields are unchanged."""

    queue: Annotated[Name | None, Field(description="New queue.", examples=["mail"])] = None
    priority: Annotated[int | None, Field(ge=0, le=9)] = None
    run_at: Annotated[Instant | None, Field(description="New due time.")] = None
    reason: Reason = None
