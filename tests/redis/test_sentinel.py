"""Redis behind a Sentinel: the master is found, and found again after a failover."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
from redis import Redis as Client

from support.daemons import Redis, Sentinel
from support.processes import wait_for
from tenure._notifier_redis import RedisNotifier
from tests.redis.conftest import Ear

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def master() -> Iterator[Redis]:
    """The master at first."""
    with Redis() as server:
        yield server


@pytest.fixture
def sentinel(master: Redis) -> Iterator[Sentinel]:
    """A Sentinel that knows the master and its replica."""
    with Redis(replica_of=master) as replica, Sentinel(master) as sentinel:
        with Client(port=sentinel.port) as client, Client(port=replica.port) as copy:
            assert wait_for(lambda: len(client.sentinel_slaves("tenure")) == 1, 60)
            assert wait_for(lambda: copy.info()["master_link_status"] == "up", 60)
        yield sentinel


async def test_wakeups_continue_with_the_new_master(master: Redis, sentinel: Sentinel) -> None:
    """Shows R34."""
    ringing, hearing = (RedisNotifier(sentinel.url, schema="tenure") for _ in range(2))
    ear = Ear(hearing)
    listening = asyncio.create_task(ear.listen())
    assert await ear.next() == ""
    ringing.publish(["before"])
    assert await ear.next() == "before"

    master.stop(signal.SIGKILL)
    async with asyncio.timeout(90):
        # A new listener may still get the old master's name, which is not final.
        while await ear.next() != "after":
            ringing.publish(["after"])
    with Client(port=sentinel.port) as client:
        assert client.sentinel_get_master_addr_by_name("tenure")[1] != master.port
    listening.cancel()
    await asyncio.wait({listening})
    ringing.close()
