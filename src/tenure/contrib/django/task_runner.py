"""Run a task from Django's task framework inside a job, send its signals, and build its results.

Errors in signal receivers are logged by Django and don't fail the job.
"""

import re
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.module_loading import import_string

from tenure import AsyncJob, Cancel, GiveUp, Job, Snooze
from tenure.admin import State
from tenure.contrib.django.project import get_app
from tenure.contrib.django.task_framework import (
    InvalidTaskError,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from tenure.errors import LeaseLost
from tenure.types import AttemptOutcome, AttemptRow, JobRow

_STATUS = {
    State.QUEUED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
# Outcomes without an exception from the task.
_ENDINGS = {
    AttemptOutcome.TIMED_OUT: "builtins.TimeoutError",
    AttemptOutcome.LOST: "tenure.errors.LeaseLost",
    AttemptOutcome.REVOKED: "tenure.errors.LeaseLost",
}


def result_of(job: JobRow, attempts: Sequence[AttemptRow], backend: str) -> "TaskResult[Any]":
    """Return a job's result, or raise TaskResultDoesNotExist if it's another task's job."""
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
    """Return the task as it was enqueued, or as currently declared if the settings reject that."""
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
    """Return these attempts' errors, oldest first."""
    wrong = (AttemptOutcome.FAILED, *_ENDINGS)
    return [_error(attempt) for attempt in attempts if attempt.outcome in wrong]


def whole_trace(error: BaseException) -> str:
    """Format an error's traceback."""
    return "".join(traceback.format_exception(error))


def _error(attempt: AttemptRow) -> TaskError:
    trace = (
        attempt.error_trace or attempt.error_message or f"the attempt ended as {attempt.outcome}"
    )
    path = _ENDINGS.get(attempt.outcome) or class_path(attempt.error_type or "", trace)
    return TaskError(exception_class_path=path, traceback=trace)


def class_path(kind: str, trace: str) -> str:
    """Find an exception class's path. The traceback names its module."""
    modules = re.findall(rf"^[ |]*((?:\w+\.)*){re.escape(kind)}(?::|$)", trace, re.MULTILINE)
    if not kind or not modules:
        return "builtins.Exception"
    return f"{modules[-1] or 'builtins.'}{kind}"


def local(instant: datetime) -> datetime:
    """Return the datetime as the project uses it: naive if USE_TZ is off."""
    return instant if settings.USE_TZ else timezone.make_naive(instant)


class NotJson(TypeError):
    """The task's result is not JSON. A retry would not help."""


class TaskRunner:
    """Runs one of the framework's tasks."""

    def __init__(self, task: "Task[..., Any]") -> None:
        self._task = task
        self._sender = type(task.get_backend())

    def call(
        self, job: Job, args: list[Any], kwargs: dict[str, Any], call: Mapping[str, Any]
    ) -> Any:
        """Run the task and send its signals."""
        earlier = get_app().admin.jobs.attempts(job.id) if job.fence > 1 else []
        result = self._begun(job, earlier, args, kwargs, call)
        task_started.send_robust(self._sender, task_result=result)
        try:
            returned = _json(self._task.func(*self._context(result), *args, **kwargs))
        except BaseException as error:
            if self._is_final(error, job):
                _end(result, error=error)
                task_finished.send_robust(self._sender, task_result=result)
            raise
        _end(result, returned)
        task_finished.send_robust(self._sender, task_result=result)
        return returned

    async def acall(
        self, job: AsyncJob, args: list[Any], kwargs: dict[str, Any], call: Mapping[str, Any]
    ) -> Any:
        """Async version of `call`."""
        earlier = await get_app().admin.jobs.aattempts(job.id) if job.fence > 1 else []
        result = self._begun(job, earlier, args, kwargs, call)
        await task_started.asend_robust(self._sender, task_result=result)
        try:
            returned = _json(await self._task.func(*self._context(result), *args, **kwargs))
        except BaseException as error:
            if self._is_final(error, job):
                _end(result, error=error)
                await task_finished.asend_robust(self._sender, task_result=result)
            raise
        _end(result, returned)
        await task_finished.asend_robust(self._sender, task_result=result)
        return returned

    def _begun(
        self,
        job: Job | AsyncJob,
        earlier: Sequence[AttemptRow],
        args: list[Any],
        kwargs: dict[str, Any],
        call: Mapping[str, Any],
    ) -> "TaskResult[Any]":
        """Return a running task's result."""
        now = timezone.now()
        return TaskResult(
            task=as_enqueued(self._task, self._task.backend, job.queue, call),
            id=str(job.id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=local(job.created_at),
            started_at=local(earlier[0].started_at) if earlier else now,
            finished_at=None,
            last_attempted_at=now,
            args=args,
            kwargs=kwargs,
            backend=self._task.backend,
            errors=errors_of(earlier),
            worker_ids=[*(str(attempt.claimed_by) for attempt in earlier), str(job.worker)],
        )

    def _context(self, result: "TaskResult[Any]") -> Sequence[TaskContext]:
        return [TaskContext(task_result=result)] if self._task.takes_context else []

    def _is_final(self, error: BaseException, job: Job | AsyncJob) -> bool:
        """Return whether this error ends the job: no retry, and the lease is not lost."""
        if not isinstance(error, Exception) or isinstance(error, Snooze | LeaseLost):
            return False
        gives_up = get_app().tasks[job.task].give_up_on
        return isinstance(error, (GiveUp, Cancel, *gives_up)) or job.attempt >= job.max_attempts


def _json(returned: Any) -> Any:
    try:
        return normalize_json(returned)
    except (TypeError, ValueError) as error:
        raise NotJson(f"the task's result must be JSON: {error}") from error


def _end(
    result: "TaskResult[Any]", returned: Any = None, *, error: BaseException | None = None
) -> None:
    """Record the end in the result, as the framework's own backends do."""
    status = TaskResultStatus.SUCCESSFUL
    if error is not None:
        status = TaskResultStatus.FAILED
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        result.errors.append(TaskError(exception_class_path=path, traceback=whole_trace(error)))
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "_return_value", returned)
    object.__setattr__(result, "finished_at", timezone.now())
