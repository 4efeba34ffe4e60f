"""The worker protocol's requests and answers."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from tenure.server.schemas.base import IdOut, Name, Opaque, RequestModel, ResponseModel, Seconds

Lease = Annotated[
    str, Field(min_length=1, max_length=200, description="As the acquire gave it out.")
]
Log = Annotated[
    str | None,
    Field(max_length=1_000_000, description="What the handler logged; its last 16 KiB are kept."),
]


class WorkerIn(RequestModel):
    """How a worker introduces itself."""

    name: Name
    host: Annotated[str, Field(max_length=200)] = ""
    pid: Annotated[int, Field(ge=0, lt=2**31)] = 0
    version: Annotated[str, Field(max_length=100)] = ""
    language: Annotated[str, Field(max_length=50)] = "unknown"
    slots: Annotated[int, Field(ge=1, le=10_000)] = 1


class AcquireIn(RequestModel):
    """Which jobs are wanted, by whom, and how long they may be waited for."""

    queues: Annotated[list[Name], Field(min_length=1, max_length=100)]
    worker: WorkerIn
    session: Annotated[
        Opaque | None, Field(description="As the last acquire gave it out; none at the first.")
    ] = None
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    holding: Annotated[
        int | None,
        Field(
            ge=0,
            le=1_000_000,
            description="How many jobs you hold now. A suspect is given out only to a worker that "
            "holds none; omitted, the server does not know.",
        ),
    ] = None
    wait: Annotated[float, Field(ge=0, le=55, allow_inf_nan=False)] = 0


class WorkOut(ResponseModel):
    """A job under a lease that begins now."""

    lease: str
    expires_in_ms: Annotated[
        int, Field(description="What is left of the lease when this answer is written.")
    ]
    renew_in_ms: Annotated[int, Field(description="When it is best renewed.")]
    id: IdOut
    fence: Annotated[IdOut, Field(description="Grows with every running period of the job.")]
    queue: str
    task: str
    args: Any
    attempt: int
    max_attempts: int
    timeout: Annotated[float | None, Field(description="Seconds that the attempt may take.")]
    suspect: Annotated[
        bool,
        Field(
            description="Whether its worker died under it before: take no further job while you "
            "hold it, so that nothing else is lost if it kills its process."
        ),
    ]
    key: str | None
    idempotency_key: Annotated[
        str, Field(description="For other systems: the same in every attempt, no other job's.")
    ]
    cursor: Any
    items: int
    created_at: datetime
    run_at: datetime
    traceparent: Annotated[
        str | None, Field(description="Where it was enqueued, as W3C trace context says it.")
    ]
    tracestate: str | None


class AcquireOut(ResponseModel):
    """What was acquired. `draining`: the worker is to end, and gets no more."""

    session: str
    waited_ms: Annotated[
        int,
        Field(
            description="From when the request arrived until this answer was written. Count a "
            "lease's end from when you sent the request, plus this: a slow way shortens it then."
        ),
    ]
    jobs: list[WorkOut]
    draining: bool


class RenewIn(RequestModel):
    """Leases to extend by their own length."""

    leases: Annotated[list[Lease], Field(min_length=1, max_length=1000)]


class RenewalOut(ResponseModel):
    """What a renewal came to; only `lost` means to stop."""

    lease: str
    answer: Literal["renewed", "busy", "lost"]
    cancel_requested: bool


class RenewOut(ResponseModel):
    """The renewals, in the order asked."""

    leases: list[RenewalOut]


class ProgressIn(RequestModel):
    """A report."""

    lease: Lease
    cursor: Any = None
    items: Annotated[dict[str, Any] | None, Field(max_length=10_000)] = None
    done: Annotated[int | None, Field(ge=0, lt=2**63)] = None
    total: Annotated[int | None, Field(ge=0, lt=2**63)] = None
    message: Annotated[str | None, Field(max_length=4096)] = None
    log: Log = None


class ProgressOut(ResponseModel):
    """What a report came to. `reached`: the job has its target and is completed; stop."""

    items: int
    added: int
    reached: bool
    cancel_requested: bool


class CompleteIn(RequestModel):
    """A job is done."""

    lease: Lease
    result: Any = None
    reason: Annotated[str, Field(min_length=1, max_length=200)] = "worker_done"
    log: Log = None


class ErrorIn(RequestModel):
    """What went wrong, in words."""

    type: Annotated[str, Field(min_length=1, max_length=1000)]
    message: Annotated[str, Field(max_length=100_000)] = ""
    trace: Annotated[str, Field(max_length=1_000_000)] = ""


class Again(StrEnum):
    """Whether a job that failed is tried again: by the backoff, after so long, or never."""

    AUTO = "auto"
    AFTER = "after"
    NEVER = "never"


class FailIn(RequestModel):
    """A job has failed."""

    lease: Lease
    error: ErrorIn
    retry: Again = Again.AUTO
    after: Annotated[Seconds | None, Field(description="With retry `after`: how long.")] = None
    log: Log = None


class ReleaseIn(RequestModel):
    """A job is given back, its attempt uncharged."""

    lease: Lease
    log: Log = None


class SettleOne(RequestModel):
    """How one lease ends: one of the three."""

    complete: CompleteIn | None = None
    fail: FailIn | None = None
    release: ReleaseIn | None = None


class SettleIn(RequestModel):
    """How several leases end."""

    endings: Annotated[list[SettleOne], Field(min_length=1, max_length=1000)]


class SettledOut(ResponseModel):
    """What a settle came to, and where the job is now. `late`: the lease was over, but nobody had
    taken the job."""

    answer: Literal["settled", "repeated", "refused", "busy"]
    state: str | None
    late: bool


class SettleOut(ResponseModel):
    """What the settles came to, in the order asked; `refused` is a lease that is lost."""

    endings: list[SettledOut]
