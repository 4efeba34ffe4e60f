"""The connections of an app: shared by threads, by the tasks of an event loop, and whole."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.errors import InvalidValue, StoreError
from tests.app.acts import connections, fetch, rows, terminate, until

if TYPE_CHECKING:
    from tenure.task import Task
    from tests.app.acts import Apps

    Work = Task[[int], int, int]


@pytest.fixture
def work(app: Tenure) -> Work:
    return a_task(app)


def a_task(app: Tenure) -> Work:
    @app.task(name="work")
    def work(n: int) -> int:
        return n

    return work


def numbers(url: str) -> list[int]:
    return sorted(each["args"]["n"] for each in rows(url))


async def test_a_connection_is_kept_for_the_next_enqueue(work: Work, url: str) -> None:
    work.enqueue(0)
    [first] = connections(url)
    for n in range(1, 5):
        work.enqueue(n)
    assert [each["pid"] for each in connections(url)] == [first["pid"]]
    assert first["application_name"] == "tenure"


async def test_threads_share_the_connections_and_no_more(apps: Apps, url: str) -> None:
    work = a_task(apps(url, pool_size=3))
    with ThreadPoolExecutor(12) as threads:
        handles = list(threads.map(work.enqueue, range(60)))
    assert len({handle.id for handle in handles}) == 60
    assert numbers(url) == list(range(60))
    assert 1 <= len(connections(url)) <= 3


def test_threads_that_need_the_database_first_and_at_once_share_it(url: str) -> None:
    app, start = Tenure(url), threading.Barrier(8)

    def ask(_number: int) -> int:
        start.wait(10)
        return id(app.engine)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(8)))) == 1


async def test_tasks_of_an_event_loop_share_the_connections_from_the_first_on(
    apps: Apps, url: str
) -> None:
    work = a_task(apps(url, pool_size=3))
    await asyncio.gather(*(work.aenqueue(n) for n in range(60)))
    assert numbers(url) == list(range(60))
    assert 1 <= len(connections(url)) <= 3


async def test_a_closed_app_opens_again_when_it_is_needed(
    app: Tenure, work: Work, url: str
) -> None:
    for n in range(3):
        work.enqueue(2 * n)
        await work.aenqueue(2 * n + 1)
        app.close()
        await app.aclose()
        until(lambda: connections(url) == [])
    assert numbers(url) == list(range(6))


def test_each_event_loop_has_connections_of_its_own(app: Tenure, work: Work, url: str) -> None:
    async def one(n: int) -> None:
        await work.aenqueue(n)
        await app.aclose()

    for n in range(3):
        asyncio.run(one(n))
    assert numbers(url) == [0, 1, 2]
    until(lambda: connections(url) == [])


async def test_a_refusal_costs_no_connection(work: Work, url: str) -> None:
    work.enqueue(0)
    [first] = connections(url)
    for _ in range(3):
        with pytest.raises(InvalidValue):
            work.using(priority=10).enqueue(1)
    work.enqueue(1)
    assert [each["pid"] for each in connections(url)] == [first["pid"]]


async def test_a_connection_that_broke_while_idle_is_not_handed_out(work: Work, url: str) -> None:
    for n in range(3):
        work.enqueue(n)
        assert terminate(url, "tenure") >= 1
    work.enqueue(3)
    assert numbers(url) == [0, 1, 2, 3]


async def test_an_async_connection_that_broke_while_idle_is_not_handed_out(
    work: Work, url: str
) -> None:
    for n in range(3):
        await work.aenqueue(n)
        assert terminate(url, "tenure") >= 1
    await work.aenqueue(3)
    assert numbers(url) == [0, 1, 2, 3]


async def test_many_connections_that_broke_while_idle_do_not_hold_up_the_next_enqueue(
    app: Tenure, work: Work, url: str
) -> None:
    """As all of a program's connections do when the server is restarted."""
    pools = app.engine._pools  # type: ignore[attr-defined]  # PostgreSQL's own.
    with (
        pools.checkout(),
        pools.checkout(),
        pools.checkout(),
        pools.checkout(),
        pools.checkout(),
        pools.checkout(),
    ):
        assert len(connections(url)) == 6
    assert terminate(url, "tenure") == 6
    work.enqueue(1)
    assert numbers(url) == [1]


async def test_a_connection_that_breaks_in_the_middle_is_replaced(work: Work, url: str) -> None:
    """What happened to the enqueue is told; the next one has a good connection."""
    fetch(
        url,
        "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
    )
    fetch(url, "CREATE TRIGGER leave AFTER INSERT ON tenure.job EXECUTE FUNCTION leave()")
    with pytest.raises(StoreError):
        work.enqueue(0)
    with pytest.raises(StoreError):
        await work.aenqueue(0)
    fetch(url, "DROP TRIGGER leave ON tenure.job")
    work.enqueue(1)
    await work.aenqueue(2)
    assert numbers(url) == [1, 2]
