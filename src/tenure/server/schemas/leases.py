"""Worker protocol models."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from tenure.server.schemas.base import IdOut, Name, Opaque, RequestModel, ResponseModel, Seconds

Lease = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="The `lease` from the acquire response.",
        examples=["tl_…"],
    ),
]
Log = Annotated[
    str | None,
    Field(max_length=1_000_000, description="The handler's log lines. The last 16 KiB are kept."),
]


class WorkerIn(RequestModel):
    """Describes the worker, for operators."""

    name: Annotated[Name, Field(description="The worker's name.", examples=["billing-1"])]
    host: Annotated[str, Field(max_length=200)] = ""
    pid: Annotated[int, Field(ge=0, lt=2**31)] = 0
    version: Annotated[str, Field(max_length=100)] = ""
    language: Annotated[str, Field(max_length=50)] = "unknown"
    slots: Annotated[
        int, Field(ge=1, le=10_000, description="How many jobs it can run concurrently.")
    ] = 1


class AcquireIn(RequestModel):
    """Which queues to take jobs from, and how long to wait."""

    queues: Annotated[
        list[Name],
        Field(
            min_length=1,
            max_length=100,
            description="Queues to take jobs from.",
            examples=[["mail"]],
        ),
    ]
    worker: Annotated[WorkerIn, Field(description="About the worker.")]
    session: Annotated[
        Opaque | None,
        Field(description="The `session` from the last acquire. Omit it the first time."),
    ] = None
    count: Annotated[
        int, Field(ge=1, le=1000, description="The maximum number of jobs to take.")
    ] = 1
    holding: Annotated[
        int | None,
        Field(
            ge=0,
            le=1_000_000,
            description="How many jobs you currently hold. Only a worker that holds none gets "
            "a `suspect` job. If omitted, the server does not know how many you hold.",
        ),
    ] = None
    wait: Annotated[
        float,
        Field(
            ge=0,
            le=55,
            allow_inf_nan=False,
            description="How long to wait for a job, in seconds.",
            examples=[30],
        ),
    ] = 0
    lease: Annotated[
        Seconds | None,
        Field(
            description="Lease length in seconds, for each job that this request takes and for "
            "its renewals. At most a day. Default: the job's, queue's or installation's.",
            examples=[120],
        ),
    ] = None


class WorkOut(ResponseModel):
    """A job with a new lease."""

    lease: Annotated[str, Field(description="Pass it to all other requests about this job.")]
    expires_in_ms: Annotated[
        int, Field(description="Time left on the lease when this response was sent.")
    ]
    renew_in_ms: Annotated[int, Field(description="When to renew the lease.")]
    id: Annotated[IdOut, Field(description="The job's id.")]
    fence: Annotated[
        IdOut, Field(description="Fencing token. It increases with each of the job's attempts.")
    ]
    queue: str
    task: str
    args: Annotated[Any, Field(description="Arguments by name.")]
    attempt: Annotated[int, Field(description="This attempt's number, starting at 1.")]
    max_attempts: int
    timeout: Annotated[
        float | None, Field(description="How long the attempt may take, in seconds.")
    ]
    suspect: Annotated[
        bool,
        Field(
            description="Whether a worker died while running this job. Take no other job while you "
            "hold it, so that no other job is lost if this one kills your process."
        ),
    ]
    key: Annotated[str | None, Field(description="Deduplication key.")]
    idempotency_key: Annotated[
        str, Field(description="A key for other systems: the same in every attempt of this job.")
    ]
    cursor: Annotated[Any, Field(description="The last cursor that an earlier attempt reported.")]
    items: Annotated[int, Field(description="Number of items so far.")]
    created_at: datetime
    run_at: Annotated[datetime, Field(description="When the job was due.")]
    traceparent: Annotated[str | None, Field(description="W3C trace context from the enqueue.")]
    tracestate: str | None


class AcquireOut(ResponseModel):
    """The acquired jobs."""

    session: Annotated[str, Field(description="Pass it to the next acquire.")]
    waited_ms: Annotated[
        int,
        Field(
            description="Time from receiving the request to sending this response. Assume that a "
            "lease ends `waited_ms + expires_in_ms` after you sent the request. A slow network "
            "then makes your estimate too early, never too late."
        ),
    ]
    jobs: Annotated[
        list[WorkOut], Field(description="The jobs. Empty if none became available in time.")
    ]
    draining: Annotated[
        bool, Field(description="Whether the worker should stop. It gets no more jobs.")
    ]


class RenewIn(RequestModel):
    """Leases to renew."""

    leases: Annotated[
        list[Lease],
        Field(min_length=1, max_length=1000, description="Leases to extend.", examples=[["tl_…"]]),
    ]


class RenewalOut(ResponseModel):
    """The result of one renewal. Stop the job if it is `lost`."""

    lease: Annotated[str, Field(description="The lease.")]
    answer: Annotated[
        Literal["renewed", "busy", "lost"],
        Field(description="`busy`: you keep the lease, so retry soon. `lost`: stop the job."),
    ]
    cancel_requested: Annotated[bool, Field(description="Whether the job should stop.")]


class RenewOut(ResponseModel):
    """Results, in request order."""

    leases: list[RenewalOut]


class ProgressIn(RequestModel):
    """A progress report."""

    lease: Lease
    cursor: Annotated[Any, Field(description="Where the next attempt should resume.")] = None
    items: Annotated[
        dict[str, Any] | None, Field(max_length=10_000, description="New items by key.")
    ] = None
    done: Annotated[
        int | None, Field(ge=0, lt=2**63, description="How much is done.", examples=[3])
    ] = None
    total: Annotated[
        int | None, Field(ge=0, lt=2**63, description="How much there is to do.", examples=[10])
    ] = None
    message: Annotated[
        str | None, Field(max_length=4096, description="A message for operators.")
    ] = None
    extend: Annotated[
        Seconds | None,
        Field(
            description="How many seconds the lease lasts from now on, at most a day. Default: its "
            "own length. Renewals do not shorten it.",
            examples=[600],
        ),
    ] = None
    log: Log = None


class ProgressOut(ResponseModel):
    """The result of a progress report."""

    items: Annotated[int, Field(description="How many items the job has.")]
    added: Annotated[int, Field(description="Number of new items.")]
    reached: Annotated[
        bool, Field(description="Whether the job reached its target and is complete. If so, stop.")
    ]
    cancel_requested: Annotated[bool, Field(description="Whether the job should stop.")]


class CompleteIn(RequestModel):
    """A completed job."""

    lease: Lease
    result: Annotated[Any, Field(description="The result, at most 64 KiB of JSON.")] = None
    reason: Annotated[
        str, Field(min_length=1, max_length=200, description="Why the job is complete.")
    ] = "worker_done"
    cursor: Annotated[Any, Field(description="The last cursor.")] = None
    items: Annotated[
        dict[str, Any] | None,
        Field(
            max_length=10_000,
            description="The last items by key, stored in the transaction that completes the job.",
        ),
    ] = None
    log: Log = None


class ErrorIn(RequestModel):
    """An error."""

    type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="The error's type.",
            examples=["TimeoutError"],
        ),
    ]
    message: Annotated[str, Field(max_length=100_000, description="Message.")] = ""
    trace: Annotated[str, Field(max_length=1_000_000, description="Stack trace.")] = ""


class Again(StrEnum):
    """Whether to retry a failed job: after the backoff, after a given time, or never."""

    AUTO = "auto"
    AFTER = "after"
    NEVER = "never"


class FailIn(RequestModel):
    """A failed attempt."""

    lease: Lease
    error: Annotated[ErrorIn, Field(description="The error.")]
    retry: Annotated[Again, Field(description="Whether to retry.")] = Again.AUTO
    after: Annotated[
        Seconds | None, Field(description="With `retry: after`, seconds until the next attempt.")
    ] = None
    log: Log = None


class ReleaseIn(RequestModel):
    """A job to return without using up an attempt."""

    lease: Lease
    log: Log = None


class SettleOne(RequestModel):
    """How one lease ends. Set exactly one of the three fields."""

    complete: CompleteIn | None = None
    fail: FailIn | None = None
    release: ReleaseIn | None = None


class SettleIn(RequestModel):
    """How several leases end."""

    endings: Annotated[
        list[SettleOne],
        Field(
            min_length=1,
            max_length=1000,
            description="One entry per lease.",
            examples=[[{"complete": {"lease": "tl_…"}}]],
        ),
    ]


class SettledOut(ResponseModel):
    """How the server handled the result."""

    answer: Annotated[
        Literal["settled", "repeated", "refused", "busy"],
        Field(
            description="`repeated`: already sent. `refused`: lease lost. `busy`: send it again."
        ),
    ]
    state: Annotated[str | None, Field(description="The job's current state.")]
    late: Annotated[
        bool, Field(description="Whether the lease had expired, but no worker had taken the job.")
    ]


class SettleOut(ResponseModel):
    """Results, in request order."""

    endings: list[SettledOut]
