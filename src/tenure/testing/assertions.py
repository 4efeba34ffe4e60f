"""What was enqueued, and assertions about it, with messages that show what was enqueued instead."""

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
# run_at is bounded below by the database's clock at the statement.
_NEAR = timedelta(seconds=1)
AnyTask = Registered[..., Any]


def enqueued(task: AnyTask, *, connection: Any = None) -> list[JobRow]:
    """The jobs of a task, whatever has become of them, in the order of their enqueue; with what
    a transaction of yours has enqueued, if its connection is given."""
    engine = task.app.engine
    jobs = engine.run(_all(engine.store), connection)
    return [job for job in jobs if job.task == task.name]


async def aenqueued(task: AnyTask, *, connection: Any = None) -> list[JobRow]:
    """As `enqueued`, over an async connection."""
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
    """AssertionError unless there is such a job, or exactly `count` of them; answers with them.

    `args` are the arguments that it must have among others; `where` is asked of each job that
    fits the rest; `delay` is how long after its enqueue it is due.
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
    """As `assert_enqueued`, over an async connection."""
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
    """AssertionError if there is such a job, whatever has become of it."""
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
    """As `assert_not_enqueued`, over an async connection."""
    __tracebackhide__ = True
    await aassert_enqueued(
        task, count=0, args=args, where=where, queue=queue, key=key, connection=connection
    )


@dataclass(frozen=True, slots=True)
class _ExpectedJobs:
    """What a test expects to have been enqueued."""

    task: AnyTask
    count: int | None
    args: Mapping[str, object] | None
    where: Callable[[JobRow], bool] | None
    queue: str | None
    key: str | None
    priority: int | None
    delay: Seconds | None

    def check(self, jobs: Sequence[JobRow]) -> list[JobRow]:
        """The jobs that fit; AssertionError if they are too few or too many."""
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
    """The jobs, a line each; of many the last, and how many there are of each task."""
    if not jobs:
        return "was nothing at all"
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
    """Every job that is kept, oldest first."""
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
