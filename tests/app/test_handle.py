"""What enqueue returns: the job's state and result, as they were when it was last looked at.

Without `from __future__ import annotations`: results are rebuilt by annotations at run time.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from support.race_helpers import BROKEN
from tenure import Handle, Tenure
from tenure._model.job import State
from tenure._model.outcome import Cancelled, Released
from tenure._rules.serialization import dump
from tenure.errors import Error, InvalidValue, JobCancelled, JobFailed, NotReady, PayloadError
from tests.app.acts import complete, end, fail, fetch


@dataclass(frozen=True)
class Point:
    x: int
    at: datetime | None = None


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
numbers = itertools.count()


def enqueued(app: Tenure, returns: Any = None) -> Handle[Any]:
    """A job of a task that says it returns this."""

    def work() -> None: ...

    work.__annotations__["return"] = returns
    return app.task(name=f"work-{next(numbers)}", max_attempts=1)(work).enqueue()


async def test_the_result_is_what_the_job_returned(app: Tenure) -> None:
    handle = enqueued(app, dict[str, list[int]])
    complete(app, {"a": [1, 2]})
    assert handle.wait(10) is handle
    assert handle.state is State.COMPLETED
    assert handle.result == {"a": [1, 2]}


async def test_result_is_the_return_value_async(app: Tenure) -> None:
    handle = enqueued(app, int)
    complete(app, 7)
    assert await handle.wait_async(10) is handle
    assert handle.result == 7


async def test_a_look_is_enough_to_know_the_result(app: Tenure) -> None:
    handle = enqueued(app, str)
    complete(app, "done")
    for seen in (handle.get(), await handle.aget()):
        assert seen is not None
        assert (seen.state, seen.done_reason) == (State.COMPLETED, "worker_done")
        assert handle.result == "done"


REBUILT: list[tuple[Any, object]] = [
    (Point, Point(1, NOON)),
    (list[Point], [Point(1), Point(2, NOON)]),
    (dict[str, Point | None], {"a": Point(1), "b": None}),
    (Point | None, Point(1)),
    (Point | None, None),
    (tuple[int, ...], (1, 2)),
    (datetime, NOON),
    (None, None),
    (Any, {"x": 1}),
]


async def test_the_result_is_rebuilt_as_the_task_says(app: Tenure) -> None:
    for returns, value in REBUILT:
        handle = enqueued(app, returns)
        complete(app, json.loads(json.dumps(dump(value))))
        assert handle.wait(10).result == value


async def test_a_result_that_no_longer_fits_says_so(app: Tenure) -> None:
    handle = enqueued(app, Point)
    complete(app, {"y": 1})
    with pytest.raises(PayloadError, match="the result does not fit Point"):
        _ = handle.wait(10).result


async def test_a_job_that_was_not_looked_at_has_no_result_yet(app: Tenure) -> None:
    handle = enqueued(app)
    complete(app, 1)
    with pytest.raises(
        NotReady, match=r"this handle has not read it yet; call wait\(\) or get\(\) first"
    ):
        _ = handle.result


async def test_a_job_that_has_not_ended_has_no_result(app: Tenure) -> None:
    handle = enqueued(app)
    handle.get()
    with pytest.raises(NotReady, match="it is queued; "):
        _ = handle.result


@pytest.mark.parametrize(
    ("ending", "state", "why"),
    [
        (fail, State.FAILED, r"job 1 failed \(attempts\): ValueError: .*; see: tenure job show 1"),
        (
            lambda app: end(app, Cancelled("enough")),
            State.CANCELLED,
            r"job 1 was cancelled \(enough\); see: ",
        ),
    ],
    ids=["failed", "cancelled"],
)
async def test_a_job_that_did_not_end_well_has_no_result(
    app: Tenure, ending: Callable[[Tenure], object], state: State, why: str
) -> None:
    handle = enqueued(app)
    ending(app)
    assert handle.wait(10).state is state
    with pytest.raises(NotReady, match=why):
        _ = handle.result
    assert (await handle.wait_async(10)).state is state


async def test_what_a_job_failed_by_comes_with_its_result(app: Tenure) -> None:
    """Shows R16."""
    handle = enqueued(app)
    fail(app)
    for look in (handle.wait, handle.get):
        look()
        with pytest.raises(JobFailed) as failed:
            _ = handle.result
        assert failed.value.reason == "attempts"
        assert failed.value.error == Error("ValueError", BROKEN.error.message)
    for alook in (handle.wait_async, handle.aget):
        await alook()
        with pytest.raises(JobFailed, match="ValueError"):
            _ = handle.result


async def test_a_job_that_failed_without_an_error_says_why(app: Tenure, url: str) -> None:
    handle = enqueued(app)
    fail(app)
    fetch(url, "UPDATE tenure.attempt SET error_type = NULL")
    with pytest.raises(JobFailed, match=r"job 1 failed \(attempts\); see: ") as failed:
        _ = handle.wait(10).result
    assert failed.value.error is None


async def test_why_a_job_was_cancelled_comes_with_its_result(app: Tenure) -> None:
    handle = enqueued(app)
    end(app, Cancelled("enough"))
    with pytest.raises(JobCancelled) as cancelled:
        _ = handle.wait(10).result
    assert cancelled.value.reason == handle.done_reason == "enough"


async def test_the_handle_of_a_taken_key_knows_the_job_too(app: Tenure) -> None:
    @app.task
    def double(n: int) -> int:
        return 2 * n

    double.using(key="k").enqueue(1)
    again = double.using(key="k").enqueue(2)
    complete(app, 2)
    assert not again.created
    assert again.wait(10).result == 2


async def test_pruned_job_has_no_row(app: Tenure, url: str) -> None:
    handle = enqueued(app)
    complete(app, 1)
    fetch(url, "TRUNCATE tenure.job_archive")
    assert handle.get() is None
    assert await handle.aget() is None
    assert handle.wait(10).state is None
    assert (await handle.wait_async(10)).state is None
    with pytest.raises(NotReady):
        _ = handle.result


async def test_a_job_given_back_is_queued_again(app: Tenure) -> None:
    handle = enqueued(app)
    end(app, Released())
    seen = handle.get()
    assert seen is not None
    assert (seen.state, seen.attempt) == (State.QUEUED, 0)
    end(app, BROKEN)
    assert handle.wait(10).state is State.FAILED


async def test_a_job_is_found_again_by_its_id_with_its_result_rebuilt(app: Tenure) -> None:
    @app.task
    def point(x: int) -> Point:
        return Point(x)

    found = point.handle(point.enqueue(1).id)
    assert (found.created, found.state) == (False, None)
    complete(app, {"x": 1, "at": None})
    assert (await found.wait_async(10)).result == Point(1)
    assert point.handle(found.id).wait(10).result == Point(1)
    assert point.handle(str(found.id)).wait(10).result == Point(1)
    with pytest.raises(InvalidValue, match="is not a job id"):
        point.handle("seven")


async def test_a_job_of_another_task_is_not_seen_by_its_id(app: Tenure) -> None:
    """An id comes from outside, and what another task was given is not for everyone."""

    @app.task
    def mine() -> None: ...
    @app.task(name="theirs", aliases=["theirs.once"])
    def theirs() -> None: ...
    @app.task(name="theirs.now", aliases=["theirs.before"])
    def renamed() -> None: ...

    handle = theirs.enqueue()
    assert mine.handle(handle.id).get() is None
    assert await mine.handle(handle.id).aget() is None
    complete(app, 1)
    assert mine.handle(handle.id).wait(10).state is None
    assert theirs.handle(handle.id).get() is not None
    [old] = fetch(app.engine.url, "SELECT id FROM tenure.job_archive")
    fetch(app.engine.url, "UPDATE tenure.job_archive SET task = 'theirs.before'")
    assert renamed.handle(old["id"]).get() is not None


@pytest.mark.parametrize("job_id", [0, -1, 1, 2**63 - 1, 2**63, -(2**70), 2**70])
async def test_unknown_id_has_no_job(app: Tenure, job_id: int) -> None:
    """Any number in an address."""

    @app.task
    def work() -> None: ...

    handle = work.handle(job_id)
    assert handle.get() is None
    assert await handle.aget() is None
    assert handle.wait(10).state is None
    assert (await handle.wait_async(10)).state is None
    assert app.admin.jobs.get(job_id) is None
