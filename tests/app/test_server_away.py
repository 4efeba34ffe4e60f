"""A server that goes and comes back: said within the wait, and forgotten once it is over."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from support.cluster import Cluster
from support.store import install
from tenure._store.postgres import pools
from tenure.errors import Unreachable
from tests.app.acts import Aside, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.app.acts import Apps

WAIT = 1.0


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A server of this file's own, to be killed."""
    with Cluster(pytestconfig.getoption("--postgres")) as cluster:
        install(cluster.url())
        yield cluster


@pytest.fixture(autouse=True)
def a_short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a connection, so that what cannot be had is known soon."""
    monkeypatch.setattr(pools, "_WAIT", WAIT)


async def test_a_server_that_is_away_is_unreachable_within_the_wait_and_back_after_it(
    apps: Apps, server: Cluster
) -> None:
    app = apps(server.url())

    @app.task(name="work")
    def work(n: int) -> int:
        return n

    work.enqueue(0)
    await work.aenqueue(0)
    server.kill()
    started_at = monotonic()
    aside = Aside(lambda: work.enqueue(1))
    with pytest.raises(Unreachable, match="check that the server runs"):
        await work.aenqueue(1)
    with pytest.raises(Unreachable, match="check that the server runs"):
        await asyncio.to_thread(aside.answer)
    assert WAIT <= monotonic() - started_at < 10 * WAIT

    server.start()
    work.enqueue(2)
    await work.aenqueue(3)
    found = [each["args"].get("n") for each in rows(server.url()) if each["task"] == "work"]
    assert found == [0, 0, 2, 3]


async def test_a_server_that_was_away_for_long_is_found_again_at_once(
    apps: Apps, server: Cluster
) -> None:
    """Attempts that failed meanwhile do not make the next one later and later."""
    app = apps(server.url())

    @app.task(name="later")
    def later(n: int) -> int:
        return n

    later.enqueue(0)
    await later.aenqueue(0)
    server.kill()
    for _ in range(4):
        aside = Aside(lambda: later.enqueue(1))
        with pytest.raises(Unreachable):
            await later.aenqueue(1)
        with pytest.raises(Unreachable):
            await asyncio.to_thread(aside.answer)

    server.start()
    later.enqueue(2)
    await later.aenqueue(3)


async def test_a_database_that_is_not_there_is_named(apps: Apps, server: Cluster) -> None:
    """The address is wrong, not the server: what it said is told."""
    app = apps(server.url("nothing"))

    @app.task
    def work() -> None: ...

    with pytest.raises(Unreachable, match='database "nothing" does not exist'):
        work.enqueue()
