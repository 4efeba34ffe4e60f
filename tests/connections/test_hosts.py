"""Several hosts in one URL: a silent one does not block the next."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from support.store import SECOND
from tenure._model.job import NewJob
from tenure._store.postgres.connections import addresses, count_hosts
from tenure._store.postgres.engine import PostgresEngine
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from support.store import Database

JOB = NewJob("task", "q")


@pytest.fixture
def behind(db: Database) -> Iterator[Callable[[int], str]]:
    """The URL of the database behind this many hosts that accept and never answer."""
    with ExitStack() as stack:

        def behind(count: int) -> str:
            silent = [
                stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
            ]
            parts = urlsplit(db.url)
            user, _, place = parts.netloc.rpartition("@")
            places = [f"127.0.0.1:{each.getsockname()[1]}" for each in silent] + [place]
            return parts._replace(netloc=f"{user}@" + ",".join(places)).geturl()

        yield behind


@pytest.mark.parametrize("deadline", [SECOND / 2, None])
async def test_a_service_passes_over_hosts_that_are_silent(
    db: Database, behind: Callable[[int], str], deadline: timedelta | None
) -> None:
    """Shows R34."""
    url = behind(2 if deadline else 1)
    link = PostgresEngine(url, schema="tenure").service_connection("service", deadline=deadline)
    assert len(await link.run(db.store.jobs.enqueue([JOB]))) == 1
    await link.close()


async def test_a_listener_passes_over_a_host_that_is_silent(
    db: Database, behind: Callable[[int], str]
) -> None:
    """Shows R34."""
    link = PostgresEngine(behind(1), schema="tenure").service_connection("listener")
    heard = link.listen(db.store.jobs.channel)
    assert await anext(heard) == ""
    await link.close()


async def test_programs_pass_over_hosts_that_are_silent(
    db: Database, behind: Callable[[int], str]
) -> None:
    """Two of them take longer than a pool's connection is waited for otherwise. Shows R34."""
    engine = PostgresEngine(behind(2), schema="tenure")
    assert len(await engine.arun(db.store.jobs.enqueue([JOB]))) == 1
    await engine.aclose()
    assert len(engine.run(db.store.jobs.enqueue([JOB]))) == 1
    engine.close()


async def test_unreachable_hosts_are_all_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = f"{silent.getsockname()[1]},{closed.getsockname()[1]}"
        url = f"host=127.0.0.1,127.0.0.1 port={ports} user=none dbname=none"
        link = PostgresEngine(url, schema="tenure").service_connection(
            "service", deadline=SECOND / 2
        )
        with pytest.raises(Unreachable, match=r"(?s)no connection within 1 s.*Connection refused"):
            await link.open()


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("postgresql:///d", ["dbname=d"]),
        ("postgresql://%2Fa,%2Fb:7/d", ["host=/a dbname=d", "host=/b dbname=d port=7"]),
        ("host=/a,/b port=7", ["host=/a port=7", "host=/b port=7"]),
        ("host=/tmp", ["host=/tmp"]),
        ("hostaddr=::1,127.0.0.1", ["hostaddr=::1", "hostaddr=127.0.0.1"]),
    ],
)
async def test_each_host_has_its_port(url: str, places: list[str]) -> None:
    found = await addresses(url, within=3)
    assert [set(each.split()) for each in found] == [set(each.split()) for each in places]
    assert count_hosts(url) == len(places)


async def test_a_name_has_all_its_addresses_and_one_that_is_not_known_stays() -> None:
    found = await addresses("host=localhost,nowhere.invalid port=7", within=3)
    assert any("hostaddr=127.0.0.1" in each for each in found)
    assert "hostaddr" not in found[-1]
    assert "host=nowhere.invalid" in found[-1]


@pytest.mark.parametrize("state", ["shut down", "full"])
async def test_a_name_is_looked_up_though_handlers_took_the_executor_of_the_loop(
    state: str,
) -> None:
    """Otherwise a worker could not connect to settle what has ended."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1)
    loop.set_default_executor(executor)
    over = threading.Event()
    if state == "full":
        executor.submit(over.wait)
    else:
        executor.shutdown()
    try:
        found = await addresses("host=localhost,127.0.0.2 port=7", within=3)
    finally:
        over.set()

    assert any("hostaddr=127.0.0.1" in each for each in found)
    assert "hostaddr=127.0.0.2" in found[-1]
