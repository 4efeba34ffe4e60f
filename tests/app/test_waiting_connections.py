"""The connections that waits go over: given back, enough for all, and told when they break."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.race_helpers import BY
from tenure import Handle
from tenure._model.job import State
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure._store.postgres.store import PostgresStore
from tenure.errors import Unreachable
from tests.app.acts import Aside, complete, connections, is_waited_for, row, terminate, until

if TYPE_CHECKING:
    from tenure import Tenure
    from tenure._store.steps import Rows, Single
    from tenure.task import Task
    from tests.app.acts import Apps

    Work = Task[[int], int, int]


@pytest.fixture
def work(app: Tenure) -> Work:
    @app.task(name="work")
    def work(n: int) -> int:
        return n

    return work


async def test_a_connection_that_has_waited_is_as_good_as_before(
    app: Tenure, apps: Apps, work: Work, url: str
) -> None:
    """It goes back to the pool; it listens no more."""
    elsewhere = apps(url, pool_size=1)
    handles: list[Handle[int]] = [Handle(elsewhere.engine, work.enqueue(n).id) for n in range(3)]
    for handle in handles:
        waiter = Aside(partial(handle.wait, 60))
        is_waited_for(url, handle)
        complete(app, 1)
        waiter.answer()
        await handle.wait_async(10)
    listening = "SELECT pg_listening_channels()"
    pools = elsewhere.engine._pools  # type: ignore[attr-defined]  # PostgreSQL's own.
    with pools.checkout() as connection:
        assert connection.execute(listening).fetchall() == []
    async with pools.acheckout() as aconnection:
        assert await (await aconnection.execute(listening)).fetchall() == []


async def test_a_wait_that_is_cancelled_gives_its_connection_back(apps: Apps, url: str) -> None:
    app = apps(url, pool_size=1)

    @app.task
    def work(n: int) -> int:
        return n

    for n in range(3):
        handle = await work.aenqueue(n)
        waiter = asyncio.create_task(handle.wait_async(60))
        await asyncio.to_thread(is_waited_for, url, handle)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert (await work.aenqueue(3)).created


async def test_a_wait_that_is_cancelled_while_it_looks_is_cancelled_and_nothing_else(
    work: Work, url: str
) -> None:
    """The TaskGroup or timeout that cancelled it waits for just this."""
    handle = await work.aenqueue(1)
    with psycopg.connect(url, application_name="locker") as locker:
        locker.execute("LOCK TABLE tenure.job")
        waiter = asyncio.create_task(handle.wait_async(60))
        await asyncio.to_thread(
            until, lambda: any(each["wait_event"] == "relation" for each in connections(url))
        )
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert (await work.aenqueue(2)).created


async def test_a_wait_that_is_cancelled_just_when_an_answer_comes_is_cancelled_too(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket is shut, and no side has noticed yet."""
    handle = await work.aenqueue(1)
    execute = AsyncSession._execute

    async def execute_and_cancel(session: AsyncSession, step: Single) -> Rows:
        answer = await execute(session, step)
        waiter.cancel()
        return answer

    monkeypatch.setattr(AsyncSession, "_execute", execute_and_cancel)
    waiter = asyncio.create_task(handle.wait_async(60))
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_more_can_wait_than_there_are_connections(apps: Apps, url: str) -> None:
    """And others can enqueue meanwhile: what they wait for may be what is enqueued."""
    app = apps(url, pool_size=2)

    @app.task
    def work(n: int) -> int:
        return n

    handles = app.enqueue_many(work.bind(n) for n in range(4))
    with ThreadPoolExecutor(4) as threads:
        waiters = [threads.submit(handle.wait, 30) for handle in handles]
        until(lambda: sum(row(url, handle.id)["awaited"] for handle in handles) >= 2)
        try:
            assert work.enqueue(5).created
        finally:
            other = apps(url)
            for _ in handles:
                complete(other, 0)
        assert [waiter.result(20).state for waiter in waiters] == [State.COMPLETED] * 4


async def test_a_wait_whose_connection_breaks_raises_no_error_of_the_driver(
    app: Tenure, work: Work, url: str
) -> None:
    """It continues over another connection, or raises Unreachable."""
    handle = work.enqueue(1)
    waiter = Aside(lambda: handle.wait(10))
    is_waited_for(url, handle)
    assert terminate(url, "tenure") > 0
    cancel_from_elsewhere(url, handle)
    with suppress(Unreachable):
        assert waiter.answer().state is State.CANCELLED


async def test_an_async_wait_whose_connection_breaks_raises_no_error_of_the_driver(
    app: Tenure, work: Work, url: str
) -> None:
    handle = await work.aenqueue(1)
    waiter = asyncio.create_task(handle.wait_async(10))
    await asyncio.to_thread(is_waited_for, url, handle)
    assert terminate(url, "tenure") > 0
    cancel_from_elsewhere(url, handle)
    with suppress(Unreachable):
        assert (await waiter).state is State.CANCELLED


def cancel_from_elsewhere(url: str, handle: Handle[int]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        Session(connection).run(PostgresStore().job_commands.cancel([handle.id], BY))
