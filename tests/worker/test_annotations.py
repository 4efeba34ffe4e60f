"""Handlers in modules whose annotations are text, with names that only the type checker knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.worker.acts import end

if TYPE_CHECKING:
    from tenure import AsyncJob, Job, Tenure


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_the_handles_name_need_not_be_known_when_the_handler_runs(
    app: Tenure, form: str
) -> None:
    """`if TYPE_CHECKING: from tenure import Job`, as linters want it: the decorator takes it, so
    enqueue and the worker must."""

    @app.task
    async def on_loop(job: AsyncJob, name: str) -> str:
        return f"{name} {job.attempt}"

    @app.task
    def in_thread(job: Job, name: str) -> str:
        return f"{name} {job.attempt}"

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue("Ada")
        await end(handle)

    assert handle.result == "Ada 1"
