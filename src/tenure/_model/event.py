"""Job and worker events, and the types of their listeners."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from tenure._model.ids import JobId, Json
from tenure._model.job import State
from tenure.errors import Error

JobEventName = Literal[
    "enqueued",
    "started",
    "completed",
    "retrying",
    "failed",
    "cancelled",
    "timed_out",
    "snoozed",
    "released",
    "lost",
]
WorkerEventName = Literal["worker_started", "worker_stopping", "worker_stopped"]
EVENTS: tuple[str, ...] = (*get_args(JobEventName), *get_args(WorkerEventName))


class JobEvent(NamedTuple):
    """A job event, published by the process that caused it, after it happened.

    Before the first claim, `attempt` is 0 and `max_attempts` may be None. `duration` is how long
    the handler ran in this process, `after` is the wait until the next attempt, and `at` is the
    time on this machine's clock.
    """

    name: JobEventName
    job_id: JobId
    task: str
    queue: str
    state: State
    attempt: int
    max_attempts: int | None
    at: datetime
    key: str | None = None
    meta: Mapping[str, Json] = MappingProxyType({})
    reason: str | None = None
    error: Error | None = None
    duration: timedelta | None = None
    after: timedelta | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEvent:
    """A worker event: the process has started, has begun to stop, or has ended its last job."""

    name: WorkerEventName
    worker: str
    queues: Sequence[str]
    concurrency: int
    at: datetime


Event = JobEvent | WorkerEvent
Listener = Callable[[Any], Any]
OnShutdown = Callable[[], Awaitable[None]]
SHUTDOWN_TIMEOUT = 2.0


def name_of(listener: Listener) -> str:
    return getattr(listener, "__qualname__", repr(listener))
