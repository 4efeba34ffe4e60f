"""The handle as a task's first parameter: known by its annotation, and fitting the function.

Without `from __future__ import annotations`: whether an annotation is text is under test.
"""

import types
from collections.abc import Callable
from typing import Any

import pytest

import tenure
from tenure import AsyncJob, Job, Tenure
from tenure.errors import InvalidValue


@pytest.fixture
def app() -> Tenure:
    """An app without a database: a decorator needs none."""
    return Tenure("postgresql://nobody@nowhere/nothing")


def refusal(app: Tenure, function: Callable[..., object]) -> str:
    with pytest.raises(InvalidValue) as refused:
        app.task(function)
    return str(refused.value)


def test_a_task_with_a_handle_is_called_with_one(app: Tenure) -> None:
    @app.task
    def work(job: Job, n: int) -> tuple[Job, int]:
        return job, n

    handle: Any = object()
    assert work(handle, n=1) == (handle, 1)


def test_the_handle_of_the_other_world_is_refused_with_what_to_write(app: Tenure) -> None:
    async def waits(job: Job, n: int) -> None: ...
    def works(handle: AsyncJob) -> None: ...

    assert refusal(app, waits).endswith(
        "waits takes Job, but the handle of `async def` is AsyncJob; "
        "write: async def waits(job: AsyncJob, …)"
    )
    assert refusal(app, works).endswith(
        "works takes AsyncJob, but the handle of `def` is Job; write: def works(handle: Job, …)"
    )


def test_the_right_handle_is_taken_from_the_signature(app: Tenure) -> None:
    @app.task
    def works(job: Job, n: int) -> None: ...
    @app.task
    async def waits(job: AsyncJob, n: int) -> None: ...
    @app.task
    def neither(job: int) -> None: ...

    assert works.definition.takes_job
    assert waits.definition.takes_job
    assert not neither.definition.takes_job
    assert works.bind(n=1).job.args == waits.bind(1).job.args == {"n": 1}
    assert neither.bind(job=1).job.args == {"job": 1}


def test_an_annotation_may_be_text(app: Tenure) -> None:
    def by_name(job: "Job", n: "int") -> None: ...
    def by_module(job: "tenure.Job", n: "int") -> None: ...
    async def wrong(job: "Job") -> None: ...

    assert tenure.Job is Job
    assert app.task(by_name).definition.takes_job
    assert app.task(by_module).definition.takes_job
    assert "write: async def wrong(job: AsyncJob, …)" in refusal(app, wrong)


def test_names_under_type_checking_are_known_as_the_handles(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    def works(job: "Job", n: int) -> None: ...

    monkeypatch.delitem(globals(), "Job")
    task = app.task(works)
    assert task.definition.takes_job
    assert task.bind(1).job.args == {"n": 1}


models = types.SimpleNamespace(Job=int)


def test_class_named_job_from_another_library_is_an_argument(app: Tenure) -> None:
    """A program about hiring has a class Job of its own."""

    def hire(job: "models.Job") -> None: ...  # type: ignore[name-defined]  # Known at run time.

    assert not app.task(hire).definition.takes_job


def test_a_handle_that_could_not_be_passed_first_is_refused(app: Tenure) -> None:
    def works(*, job: Job) -> None: ...

    assert "job" in refusal(app, works)
