"""Events of jobs and workers, and the types of their listeners."""

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
    """Something that has happened to a job, told after the fact by the process that saw to it.

    `state` is where the job was then. `attempt` is 0 and `max_attempts` may be None before the
    first claim. `duration` is how long the handler ran here; `after` is the wait until the next
    attempt. `at` is this machine's time.
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
    """A process that runs work has started, begins to stop, or has run its last job."""

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
    """What messages call it."""
    return getattr(listener, "__qualname__", repr(listener))
