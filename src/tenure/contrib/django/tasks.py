"""The backend for Django's task framework: `django_tasks`, or `django.tasks` in Django 6 and later.

Each of the framework's tasks is registered with Tenure under its module path, so a worker runs,
retries and recovers it like any other task. The framework creates one backend per thread, so this
module holds the registered tasks.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import connections
from django.utils import timezone

from tenure import AsyncJob, Job
from tenure.admin import Admin
from tenure.config import TaskOptions
from tenure.contrib.django.project import get_app
from tenure.contrib.django.task_framework import (
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    WorkerBackend,
    normalize_json,
    task_enqueued,
)
from tenure.contrib.django.task_runner import NotJson, TaskRunner, result_of

if TYPE_CHECKING:
    from tenure.contrib.django.task_framework import Task


_KNOWN: dict[str, Any] = {}
_lock = threading.Lock()


def declare(task: "Task[..., Any]", options: Mapping[str, Any]) -> Any:
    """Return a framework task's Tenure task, registered on first use with the backend's options."""
    with _lock:
        known = _KNOWN.get(task.module_path)
        if known is None:
            known = _KNOWN[task.module_path] = _registered(task, options)
    return known


def _registered(task: "Task[..., Any]", options: Mapping[str, Any]) -> Any:
    running = TaskRunner(task)

    def run(job: Job, args: list[Any], kwargs: dict[str, Any], **call: Any) -> Any:
        return running.call(job, args, kwargs, call)

    async def arun(job: AsyncJob, args: list[Any], kwargs: dict[str, Any], **call: Any) -> Any:
        return await running.acall(job, args, kwargs, call)

    given = {**options, "give_up_on": (*options.get("give_up_on", ()), NotJson)}
    decorate: Any = get_app().task(name=task.module_path, queue=task.queue_name, **given)
    return decorate(arun if iscoroutinefunction(task.func) else run)


T = TypeVar("T")
OPTIONS = TaskOptions.__optional_keys__ - {"name", "aliases", "queue", "priority"}
# Options that are also passed with each enqueue, because another backend may share the task.
_OF_A_CALL = ("max_attempts", "timeout", "lease", "expires_in")
_NEWEST_ID = 2**63 - 1


def priority(of_task: int) -> int:
    """Map the framework's priorities, −100 to 100, to Tenure's 0 to 9.

    The default of 0 becomes 5.
    """
    if of_task == 0:
        return 5
    return (of_task + 100) // 20 if of_task < 0 else 6 + (of_task - 1) // 25


class TenureBackend(WorkerBackend):
    """Enqueue jobs in Django's transaction. OPTIONS are the `@app.task` options."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: "Task[..., Any]") -> None:
        """Check a task and register it with Tenure."""
        super().validate_task(task)
        declare(task, self.options)

    def enqueue(
        self, task: "Task[..., T]", args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> "TaskResult[T]":
        """Enqueue one job, in Django's transaction if one is open."""
        self.validate_task(task)
        call = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        # Store these values too. Tenure's fields lose them, and a result's task must equal this
        # one.
        if task.priority:
            call["priority"] = task.priority
        if task.run_after is not None:
            call["run_after"] = task.run_after.isoformat()
        options = {name: self.options[name] for name in _OF_A_CALL if name in self.options}
        handle = (
            declare(task, self.options)
            .using(
                queue=task.queue_name,
                priority=priority(task.priority),
                run_at=_aware(task.run_after),
                **options,
            )
            .enqueue(**call)
        )
        result: TaskResult[T] = TaskResult(
            task=task,
            id=str(handle.id),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=call["args"],
            kwargs=call["kwargs"],
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> "TaskResult[Any]":
        """Get the job's result over Django's connection, even for a job in its open transaction.

        Raises:
            TaskResultDoesNotExist: The job does not exist, or was removed.
        """
        if not (result_id.isascii() and result_id.isdigit() and int(result_id) <= _NEWEST_ID):
            raise TaskResultDoesNotExist(result_id)
        app = get_app()
        admin = Admin(app.engine, runner=app.engine.on(connections[app.database]))
        job = admin.jobs.get(int(result_id))
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        sealing = app.engine.sealing
        attempts = [
            sealing.open_attempt(attempt, task=job.task) for attempt in admin.jobs.attempts(job.id)
        ]
        return result_of(sealing.open_job(job), attempts, self.alias)

    def check(self, **_other: Any) -> Iterable[CheckMessage]:
        """Check the TASKS setting."""
        name = f"settings.TASKS[{self.alias!r}]"
        if not apps.is_installed("tenure.contrib.django"):
            yield Error(
                f"{name} needs Tenure's tables, and the app is not installed",
                hint="add 'tenure.contrib.django' to INSTALLED_APPS",
                id="tenure.E006",
            )
        if unknown := sorted(set(self.options) - OPTIONS):
            yield Error(
                f"{name}['OPTIONS'] has unknown keys: {', '.join(unknown)}",
                hint=f"use {', '.join(sorted(OPTIONS))}",
                id="tenure.E007",
            )


def _aware(instant: datetime | None) -> datetime | None:
    """Add the project's time zone to a naive datetime, which Django uses when USE_TZ is off."""
    if instant is not None and timezone.is_naive(instant):
        return timezone.make_aware(instant)
    return instant
