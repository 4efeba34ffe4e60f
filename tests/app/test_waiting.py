"""Waiting for a job's end: woken by the settle that ends it, not by polling."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.race_helpers import BROKEN, BY, ended
from tenure import Handle
from tenure._model.job import State
from tenure._model.outcome import Cancelled, Released, Succeeded
from tenure._store.postgres import wait_for_job
from tests.app.acts import (
    Aside,
    claim,
    complete,
    connections,
    end,
    is_waited_for,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenure import Tenure
    from tenure._model.outcome import Outcome
    from tenure.task import Task
    from tests.app.acts import Apps

    Work = Task[[int], int, int]

ROUNDS = 5


@pytest.fixture
def woken_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow look beneath is so slow that only being told ends a wait in time."""
    monkeypatch.setattr(wait_for_job, "_POLL", 600.0)


@pytest.fixture
def work(app: Tenure) -> Work:
    @app.task(name="work", max_attempts=1)
    def work(n: int) -> int:
        return n

    return work


def ends_by(url: str, handle: Handle[int], act: Callable[[], object]) -> None:
    """A wait that has begun before this act ends after it, and is not waiting for long."""
    waiter = Aside(partial(handle.wait, 60))
    is_waited_for(url, handle)
    act()
    assert waiter.answer() is handle


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Succeeded(7), State.COMPLETED),
        (BROKEN, State.FAILED),
        (Cancelled("enough"), State.CANCELLED),
    ],
    ids=["completed", "failed", "cancelled"],
)
@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "keyed"])
async def test_a_wait_ends_with_the_settle_and_not_with_its_next_look(
    app: Tenure,
    work: Work,
    url: str,
    woken_only: None,
    outcome: Outcome,
    state: State,
    key: str | None,
) -> None:
    handle = work.using(key=key).enqueue(1)
    claimed = claim(app)
    settle = app.engine.store.settlement.settle([ended(claimed.lease, outcome)])
    ends_by(url, handle, lambda: app.engine.run(settle))
    assert handle.state is state


async def test_a_wait_is_woken_round_after_round(
    app: Tenure, work: Work, url: str, woken_only: None
) -> None:
    for n in range(ROUNDS):
        handle = work.enqueue(n)
        ends_by(url, handle, partial(complete, app, n))
        assert handle.result == n


async def test_an_async_wait_is_woken_round_after_round(
    app: Tenure, work: Work, url: str, woken_only: None
) -> None:
    for n in range(ROUNDS):
        handle = await work.aenqueue(n)
        waiter = asyncio.create_task(handle.wait_async(30))
        await asyncio.to_thread(is_waited_for, url, handle)
        await asyncio.to_thread(complete, app, n)
        await asyncio.wait_for(waiter, 20)
        assert handle.result == n


async def test_a_wait_is_woken_by_a_completion_in_a_transaction(
    app: Tenure, work: Work, url: str, woken_only: None
) -> None:
    handle = work.enqueue(1)
    lease = claim(app).lease
    settlement = ended(lease, Succeeded(1)).settlement

    def settle_within() -> None:
        with psycopg.connect(url) as connection:
            app.engine.on(connection).run(
                app.engine.store.settlement.settle_within(lease, settlement)
            )

    ends_by(url, handle, settle_within)


async def test_a_wait_is_woken_by_the_report_that_reaches_the_target(
    app: Tenure, work: Work, url: str, woken_only: None
) -> None:
    """Shows R23."""
    handle = work.using(target=1).enqueue(1)
    lease = claim(app).lease
    report = app.engine.store.leases.progress(lease, items={"a": 1})
    ends_by(url, handle, lambda: app.engine.run(report))


async def test_end_without_a_notification_is_seen_at_the_next_poll(
    app: Tenure, work: Work, url: str
) -> None:
    handle = work.enqueue(1)
    cancel = app.engine.store.job_commands.cancel([handle.id], BY)
    ends_by(url, handle, lambda: app.engine.run(cancel))
    assert handle.state is State.CANCELLED


async def test_wait_continues_until_a_final_state(app: Tenure, work: Work, url: str) -> None:
    handle, other = work.enqueue(1), work.using(queue="other").enqueue(2)
    waiter = Aside(lambda: handle.wait(30))
    is_waited_for(url, handle)
    end(app, Released())
    other_waiter = Aside(lambda: other.wait(30))
    is_waited_for(url, other)
    end(app, None, "other")
    assert other_waiter.answer().state is State.COMPLETED
    assert waiter.is_alive()
    complete(app, 1)
    assert waiter.answer().state is State.COMPLETED


async def test_every_waiter_of_a_job_is_notified(
    app: Tenure, apps: Apps, work: Work, url: str, woken_only: None
) -> None:
    job_id = work.enqueue(1).id
    elsewhere = apps(url)
    handles: list[Handle[int]] = [Handle(elsewhere.engine, job_id) for _ in range(3)]

    def looked() -> int:
        """How many of them have read the job, and so wait to be told."""
        return sum("job_failed" in each["query"] for each in connections(url))

    waiters = [Aside(partial(handle.wait, 30)) for handle in handles]
    until(lambda: looked() == 3)
    complete(app, 1)
    assert [waiter.answer().result for waiter in waiters] == [1, 1, 1]


async def test_a_wait_for_what_has_ended_returns_at_once(
    app: Tenure, work: Work, woken_only: None
) -> None:
    handle = work.enqueue(1)
    complete(app, 1)
    assert handle.wait().result == 1
    assert (await handle.wait_async()).result == 1


async def test_a_wait_whose_time_is_up_says_how_the_job_stands(app: Tenure, work: Work) -> None:
    times: list[float | timedelta] = [0, 0.05, timedelta(milliseconds=50)]
    handle = work.enqueue(1)
    for seconds in times:
        with pytest.raises(TimeoutError, match=f"job {handle.id} is still queued"):
            handle.wait(seconds)
    claim(app)
    for seconds in times:
        with pytest.raises(TimeoutError, match=f"job {handle.id} is still running"):
            await handle.wait_async(seconds)
    assert handle.state is State.RUNNING
