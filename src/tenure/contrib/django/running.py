"""Running a task of Django's framework inside a job of Tenure's, with the signals it promises.

A receiver's error is logged by Django and fails no job: what the task has done stays done.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from tenure import AsyncJob, Cancel, GiveUp, Job, Snooze
from tenure.admin import AttemptRow
from tenure.contrib.django import app
from tenure.contrib.django.framework import (
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from tenure.contrib.django.results import as_enqueued, errors_of, local, whole_trace
from tenure.errors import LeaseLost

if TYPE_CHECKING:
    from tenure.contrib.django.framework import Task


class NotJson(TypeError):
    """What the task returned cannot be kept. Not worth a retry: it would return the same."""


class Running:
    """One task of the framework's, as often as it is run."""

    def __init__(self, task: "Task[..., Any]") -> None:
        self._task = task
        self._sender = type(task.get_backend())

    def call(
        self, job: Job, args: list[Any], kwargs: dict[str, Any], call: Mapping[str, Any]
    ) -> Any:
        """Run it in a job's thread."""
        earlier = app.admin.attempts(job.id) if job.fence > 1 else []
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
        """Run it on the event loop."""
        earlier = await app.admin.aattempts(job.id) if job.fence > 1 else []
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
        """The result as it is while the task runs."""
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
        """Whether nothing comes after this error: no retry, no other holder."""
        if not isinstance(error, Exception) or isinstance(error, Snooze | LeaseLost):
            return False
        gives_up = app.tasks[job.task].give_up_on
        return isinstance(error, (GiveUp, Cancel, *gives_up)) or job.attempt >= job.max_attempts


def _json(returned: Any) -> Any:
    try:
        return normalize_json(returned)
    except (TypeError, ValueError) as error:
        raise NotJson(f"the task's return value is not JSON: {error}") from error


def _end(
    result: "TaskResult[Any]", returned: Any = None, *, error: BaseException | None = None
) -> None:
    """Note the end in the result, as the framework's own backends do."""
    status = TaskResultStatus.SUCCESSFUL
    if error is not None:
        status = TaskResultStatus.FAILED
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        result.errors.append(TaskError(exception_class_path=path, traceback=whole_trace(error)))
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "_return_value", returned)
    object.__setattr__(result, "finished_at", timezone.now())
