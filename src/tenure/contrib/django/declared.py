"""Tasks of Django's framework as tasks of Tenure's: each once, whoever declares or uses it.

The framework makes a backend per thread, so what is known is kept here and not in a backend.
"""

import threading
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from tenure import AsyncJob, Job
from tenure.contrib.django import app
from tenure.contrib.django.running import NotJson, Running

if TYPE_CHECKING:
    from tenure.contrib.django.framework import Task

_KNOWN: dict[str, Any] = {}
_lock = threading.Lock()


def declare(task: "Task[..., Any]", options: Mapping[str, Any]) -> Any:
    """Tenure's task for it, made if it is not known yet, with the options of its backend."""
    with _lock:
        known = _KNOWN.get(task.module_path)
        if known is None:
            known = _KNOWN[task.module_path] = _registered(task, options)
    return known


def _registered(task: "Task[..., Any]", options: Mapping[str, Any]) -> Any:
    running = Running(task)

    def run(job: Job, args: list[Any], kwargs: dict[str, Any], **call: Any) -> Any:
        return running.call(job, args, kwargs, call)

    async def arun(job: AsyncJob, args: list[Any], kwargs: dict[str, Any], **call: Any) -> Any:
        return await running.acall(job, args, kwargs, call)

    given = {**options, "give_up_on": (*options.get("give_up_on", ()), NotJson)}
    decorate: Any = app.task(name=task.module_path, queue=task.queue_name, **given)
    return decorate(arun if iscoroutinefunction(task.func) else run)
