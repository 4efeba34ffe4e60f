"""Assertions about enqueued jobs. A failure lists the jobs that were enqueued instead."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tenure._model.job import JobRow, State
from tenure._rules import serialization
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.config import duration
from tenure.task import Registered, Seconds

_PAGE = 1000
_SHOWN = 10
# run_at is never earlier than the database's time when the statement ran, so it may differ
# slightly.
_NEAR = timedelta(seconds=1)
AnyTask = Registered[..., Any]


def enqueued(task: AnyTask, *, connection: Any = None) -> list[JobRow]:
    """List a task's jobs in every state, in enqueue order.

    Args:
        task: The task.
        connection: Your connection, to see jobs in your open transaction.

    Returns:
        The jobs.
    """
    engine = task.app.engine
    jobs = engine.run(_all(engine.store), connection)
    return [job for job in jobs if job.task == task.name]


async def aenqueued(task: AnyTask, *, connection: Any = None) -> list[JobRow]:
    """Async version of `enqueued`.

    Args:
        task: The task.
        connection: Your async connection, to see jobs in your open transaction.

    Returns:
        The jobs.
    """
    engine = task.app.engine
    jobs = await engine.arun(_all(engine.store), connection)
    return [job for job in jobs if job.task == task.name]


def assert_enqueued(
    task: AnyTask,
    *,
    count: int | None = None,
    args: Mapping[str, object] | None = None,
    where: Callable[[JobRow], bool] | None = None,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    delay: Seconds | None = None,
    connection: Any = None,
) -> list[JobRow]:
    """Assert that a matching job was enqueued for the task.

    Args:
        task: The task.
        count: The exact number of jobs (default: at least one).
        args: Arguments that the job must have. It may have others.
        where: A predicate called with each job that matches everything else.
        queue: The job's queue.
        key: The job's deduplication key.
        priority: The job's priority.
        delay: How long after its enqueue the job is due.
        connection: Your connection, to see jobs in your open transaction.

    Returns:
        The matching jobs.

    Raises:
        AssertionError: No job matches, or the number of matches is not `count`.
    """
    __tracebackhide__ = True
    wanted = _ExpectedJobs(task, count, args, where, queue, key, priority, delay)
    engine = task.app.engine
    return wanted.check(engine.run(_all(engine.store), connection))


async def aassert_enqueued(
    task: AnyTask,
    *,
    count: int | None = None,
    args: Mapping[str, object] | None = None,
    where: Callable[[JobRow], bool] | None = None,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    delay: Seconds | None = None,
    connection: Any = None,
) -> list[JobRow]:
    """Async version of `assert_enqueued`.

    Args:
        task: The task.
        count: The exact number of jobs (default: at least one).
        args: Arguments that the job must have. It may have others.
        where: A predicate called with each job that matches everything else.
        queue: The job's queue.
        key: The job's deduplication key.
        priority: The job's priority.
        delay: How long after its enqueue the job is due.
        connection: Your connection, to see jobs in your open transaction.

    Returns:
        The matching jobs.

    Raises:
        AssertionError: No job matches, or the number of matches is not `count`.
    """
    __tracebackhide__ = True
    wanted = _ExpectedJobs(task, count, args, where, queue, key, priority, delay)
    engine = task.app.engine
    return wanted.check(await engine.arun(_all(engine.store), connection))


def assert_not_enqueued(
    task: AnyTask,
    *,
    args: Mapping[str, object] | None = None,
    where: Callable[[JobRow], bool] | None = None,
    queue: str | None = None,
    key: str | None = None,
    connection: Any = None,
) -> None:
    """Assert that no matching job was enqueued for the task, whatever its state.

    Args:
        task: The task.
        args: Arguments that the job must have. It may have others.
        where: A predicate called with each job that matches everything else.
        queue: The job's queue.
        key: The job's deduplication key.
        connection: Your connection, to see jobs in your open transaction.

    Raises:
        AssertionError: A job matches.
    """
    __tracebackhide__ = True
    assert_enqueued(
        task, count=0, args=args, where=where, queue=queue, key=key, connection=connection
    )


async def aassert_not_enqueued(
    task: AnyTask,
    *,
    args: Mapping[str, object] | None = None,
    where: Callable[[JobRow], bool] | None = None,
    queue: str | None = None,
    key: str | None = None,
    connection: Any = None,
) -> None:
    """Async version of `assert_not_enqueued`.

    Args:
        task: The task.
        args: Arguments that the job must have. It may have others.
        where: A predicate called with each job that matches everything else.
        queue: The job's queue.
        key: The job's deduplication key.
        connection: Your connection, to see jobs in your open transaction.

    Raises:
        AssertionError: A job matches.
    """
    __tracebackhide__ = True
    await aassert_enqueued(
        task, count=0, args=args, where=where, queue=queue, key=key, connection=connection
    )


@dataclass(frozen=True, slots=True)
class _ExpectedJobs:
    """The jobs that a test expects."""

    task: AnyTask
    count: int | None
    args: Mapping[str, object] | None
    where: Callable[[JobRow], bool] | None
    queue: str | None
    key: str | None
    priority: int | None
    delay: Seconds | None

    def check(self, jobs: Sequence[JobRow]) -> list[JobRow]:
        """Return the matching jobs. Raise AssertionError if there are too few or too many."""
        __tracebackhide__ = True
        fitting = [job for job in jobs if self._fits(job)]
        if len(fitting) == self.count or (self.count is None and fitting):
            return fitting
        wanted = "a job" if self.count is None else f"{self.count} jobs" if self.count else "no job"
        raise AssertionError(
            f"expected {wanted} of {self.task.name}{self._describe()}, "
            f"found {len(fitting) or 'none'}; enqueued {_list_jobs(jobs)}"
        )

    def _fits(self, job: JobRow) -> bool:
        expected = {
            "task": self.task.name,
            "queue": self.queue,
            "key": self.key,
            "priority": self.priority,
        }
        if any(
            value is not None and getattr(job, name) != value for name, value in expected.items()
        ):
            return False
        stored: Mapping[str, object] = job.args or {}
        for name, value in (self.args or {}).items():
            if name not in stored or stored[name] != json.loads(
                json.dumps(serialization.dump(value))
            ):
                return False
        if self.delay is not None:
            off = job.run_at - job.created_at - duration(self.delay)
            if abs(off) > _NEAR:
                return False
        return self.where is None or self.where(job)

    def _describe(self) -> str:
        expected = {
            "args": None if self.args is None else dict(self.args),
            "queue": self.queue,
            "key": self.key,
            "priority": self.priority,
            "delay": self.delay,
        }
        parts = [f"{name}={value!r}" for name, value in expected.items() if value is not None]
        parts += ["where=…"] if self.where is not None else []
        return f" with {', '.join(parts)}" if parts else ""


def _list_jobs(jobs: Sequence[JobRow]) -> str:
    """Format one line per job. If there are many, show the last ones and a count per task."""
    if not jobs:
        return "was nothing"
    lines = [f"\n  {_line(job)}" for job in jobs[-_SHOWN:]]
    if len(jobs) > _SHOWN:
        counts = Counter(job.task for job in jobs)
        lines.insert(0, f" {len(jobs)} ({', '.join(f'{n} {t}' for t, n in counts.items())}), last:")
    else:
        lines.insert(0, " were:")
    return "".join(lines).strip()


def _line(job: JobRow) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in (job.args or {}).items())
    key = f", key {job.key!r}" if job.key is not None else ""
    later = job.run_at - job.created_at
    delay = f", delay {later.total_seconds():g} s" if later > _NEAR else ""
    return f"job {job.id}: {job.task}({args}), queue {job.queue}{key}{delay}, {job.state}"


def _all(store: Store) -> Op[list[JobRow]]:
    """List every job, oldest first."""
    jobs: list[JobRow] = []
    for state in State:
        place = None
        while True:
            page = yield from store.job_queries.list(state, count=_PAGE, place=place)
            jobs += page.jobs
            place = page.next
            if place is None:
                break
    return sorted(jobs, key=lambda job: job.id)
