"""Tasks that a project could have: Tenure's own, and those of Django's task framework.

Loaded once Django is set up, which the conftest beside it does.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection
from django_tasks import task
from shop.models import Order

from tenure import Retry, current_job
from tenure.contrib.django import app

if TYPE_CHECKING:
    from django_tasks import TaskContext

# The driver's connections over which `ask` asked.
REQUESTS: list[Any] = []


@app.task(name="sample.note", max_attempts=1)
def note(text: str = "") -> str:
    return text


@app.task(name="sample.ask", max_attempts=1)
def ask() -> int:
    """Ask over this thread's connection; how many queries Django has noted on it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    REQUESTS.append(connection.connection)
    return len(connection.queries)


@app.task(name="sample.aask", max_attempts=1)
async def aask() -> int:
    return await Order.objects.acount()


@app.task(name="sample.cut", max_attempts=1)
def cut() -> None:
    """Have the server end this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


class Refused(Exception):
    """An error of the project's own."""


@task
def add(left: int, right: int = 0) -> int:
    return left + right


@task(queue_name="mail", priority=10)
async def aadd(left: int, right: int = 0) -> int:
    return left + await Order.objects.acount() + right


@task(takes_context=True)
def tell(context: TaskContext, times: int) -> list[Any]:
    """Fail until the attempt that was asked for, and tell what is known of the task then."""
    if context.attempt < times:
        raise Retry("not yet", after=0)
    result = context.task_result
    return [context.attempt, result.id, result.status, len(result.errors), result.task.name]


@task
def refuse(text: str) -> None:
    current_job()
    raise Refused(text)


@task
def retry_once() -> int:
    if current_job().attempt == 1:
        raise Retry("once more", after=0)
    return current_job().attempt


@task
def odd() -> object:
    return threading.Lock()


@task
def when() -> str:
    return datetime.now().isoformat()  # noqa: DTZ005 - any text does
