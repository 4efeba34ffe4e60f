"""A job and its attempts as a result of Django's task framework."""

import re
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.module_loading import import_string

from tenure.admin import AttemptRow, Ending, JobRow, State
from tenure.contrib.django.framework import (
    InvalidTaskError,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)

_STATUS = {
    State.QUEUED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
# An ending that no exception of the task's own tells of.
_ENDINGS = {
    Ending.TIMED_OUT: "builtins.TimeoutError",
    Ending.LOST: "tenure.errors.LeaseLost",
    Ending.REVOKED: "tenure.errors.LeaseLost",
}


def result_of(job: JobRow, attempts: Sequence[AttemptRow], backend: str) -> "TaskResult[Any]":
    """The result; TaskResultDoesNotExist for a job that is not of a task of the framework's."""
    task = as_enqueued(_task(job), backend, job.queue, job.args)
    started = [attempt.started_at for attempt in attempts]
    workers = [str(attempt.claimed_by) for attempt in attempts]
    if job.state is State.RUNNING and job.claimed_at is not None:
        started.append(job.claimed_at)
        workers.append(str(job.claimed_by))
    result: TaskResult[Any] = TaskResult(
        task=task,
        id=str(job.id),
        status=_STATUS[job.state],
        enqueued_at=local(job.created_at),
        started_at=local(started[0]) if started else None,
        finished_at=None if job.ended_at is None else local(job.ended_at),
        last_attempted_at=local(started[-1]) if started else None,
        args=job.args["args"],
        kwargs=job.args["kwargs"],
        backend=backend,
        errors=errors_of(attempts),
        worker_ids=workers,
    )
    object.__setattr__(result, "_return_value", job.result)
    return result


def _task(job: JobRow) -> "Task[..., Any]":
    try:
        task = import_string(job.task)
    except ImportError:
        task = None
    if not isinstance(task, Task):
        raise TaskResultDoesNotExist(str(job.id))
    return task


def as_enqueued(
    task: "Task[..., Any]", backend: str, queue: str, call: Mapping[str, Any]
) -> "Task[..., Any]":
    """The task as it was when the job was enqueued; as it is declared now, if the settings have
    changed since and would refuse that."""
    after = call.get("run_after")
    try:
        return task.using(
            backend=backend,
            queue_name=queue,
            priority=call.get("priority", 0),
            run_after=None if after is None else parse_datetime(after),
        )
    except InvalidTaskError:
        return task


def errors_of(attempts: Sequence[AttemptRow]) -> list[TaskError]:
    """What went wrong in these attempts, oldest first."""
    wrong = (Ending.FAILED, *_ENDINGS)
    return [_error(attempt) for attempt in attempts if attempt.outcome in wrong]


def whole_trace(error: BaseException) -> str:
    """The error's trace as text."""
    return "".join(traceback.format_exception(error))


def _error(attempt: AttemptRow) -> TaskError:
    told = attempt.error_trace or attempt.error_message or f"the attempt ended as {attempt.outcome}"
    path = _ENDINGS.get(attempt.outcome) or class_path(attempt.error_type or "", told)
    return TaskError(exception_class_path=path, traceback=told)


def class_path(kind: str, trace: str) -> str:
    """Where the exception's class is: its trace names the module before the class."""
    found = re.findall(rf"^[ |]*((?:\w+\.)*){re.escape(kind)}(?::|$)", trace, re.MULTILINE)
    if not kind or not found:
        return "builtins.Exception"
    return f"{found[-1] or 'builtins.'}{kind}"


def local(instant: datetime) -> datetime:
    """The instant as the project has its instants: with USE_TZ off, without a zone."""
    return instant if settings.USE_TZ else timezone.make_naive(instant)
