"""Redis Cluster, six nodes of it: wakeups reach all nodes, and survive the loss of some."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from support.daemons import Redis, RedisCluster, ask
from support.processes import wait_for
from tenure._notifier_redis import RedisNotifier, redis_address
from tenure.errors import Unreachable
from tests.redis.conftest import WOKEN_WITHIN, Ear
from tests.redis.test_going_on import _run_one

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.daemons import RedisNode
    from tests.redis.conftest import Apps

pytestmark = pytest.mark.timeout(180)
CHANNEL = "tenure:0:tenure"


@pytest.fixture
def redis_cluster() -> Iterator[RedisCluster]:
    """Three masters and their replicas."""
    with RedisCluster() as cluster:
        yield cluster


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[Ear]:
    """An ear that listens at one of these nodes."""
    bell = RedisNotifier(url, schema="tenure")
    ear = Ear(bell)
    task = asyncio.create_task(ear.listen())
    try:
        assert await ear.next() == ""
        yield ear
    finally:
        task.cancel()
        await asyncio.wait({task})
        bell.close()


def listeners(node: RedisNode) -> int:
    """How many listen at this node."""
    answer = ask(node, "PUBSUB", "NUMSUB", CHANNEL).split()
    return int(answer[1]) if len(answer) == 2 else 0


async def word(ear: Ear) -> str:
    """The next queue that is heard of."""
    while not (queue := await ear.next()):
        pass
    return queue


async def node_of_the_listener(nodes: list[RedisNode]) -> RedisNode:
    """The node that a worker listens at, as soon as it does."""

    def one() -> bool:
        return sum(map(listeners, nodes)) == 1

    assert await asyncio.to_thread(wait_for, one, 30)
    [node] = [each for each in nodes if listeners(each)]
    return node


async def test_wakeup_at_any_node_reaches_a_listener_at_any_other(
    redis_cluster: RedisCluster,
) -> None:
    """Masters and replicas alike."""
    first, *others = redis_cluster.nodes
    async with listening(redis_cluster.url_of(first)) as ear:
        for number, node in enumerate(others):
            bell = RedisNotifier(redis_cluster.url_of(node), schema="tenure")
            bell.check()
            bell.publish([f"queue {number}"])
            assert await word(ear) == f"queue {number}"
            bell.close()


async def test_worker_is_woken_through_the_loss_of_its_node(
    apps: Apps, redis_cluster: RedisCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """It would look by itself after 40 s only. A killed node and a frozen one. Shows R34."""
    nodes = redis_cluster.nodes
    app = apps(redis_cluster.url)
    with caplog.at_level(logging.INFO, "tenure"):
        async with app.run():
            await node_of_the_listener(nodes)
            await _run_one(app)
            for lose in (_kill, _freeze):
                lost = await node_of_the_listener(nodes)
                lose(lost)
                # It notices by its connection to the node, or by the node's silence.
                await node_of_the_listener([node for node in nodes if node is not lost])
                await asyncio.sleep(1)
                assert await _run_one(app) < WOKEN_WITHIN
                lost.restart()
                assert await asyncio.to_thread(wait_for, redis_cluster.is_whole, 60)
    output = [r.getMessage() for r in caplog.records if r.getMessage().startswith("wakeups: ")]
    assert output[0].startswith("wakeups: Redis ")
    assert output[-1] == "wakeups: listening again"


def _kill(node: RedisNode) -> None:
    node.stop(signal.SIGKILL)


def _freeze(node: RedisNode) -> None:
    node.freeze()


async def test_enqueue_is_published_through_the_loss_of_the_publishers_node(
    redis_cluster: RedisCluster,
) -> None:
    """The publisher notices at its next wakeup, and sends it to another node."""
    first, second, *_, last = redis_cluster.nodes
    bell = RedisNotifier(redis_cluster.url_of(first, second), schema="tenure")
    async with listening(redis_cluster.url_of(last)) as ear:
        bell.publish(["before"])
        assert await word(ear) == "before"
        first.stop(signal.SIGKILL)
        bell.publish(["one is away"])
        assert await word(ear) == "one is away"
        second.stop(signal.SIGKILL)
        first.start()
        bell.publish(["the other is away"])
        assert await word(ear) == "the other is away"
    bell.close()


async def test_without_the_whole_cluster_workers_poll_and_are_woken_once_it_is_back(
    apps: Apps, redis_cluster: RedisCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows R34."""
    app = apps(redis_cluster.url, listen=True)
    with caplog.at_level(logging.INFO, "tenure"):
        async with app.run():
            await node_of_the_listener(redis_cluster.nodes)
            for node in redis_cluster.nodes:
                node.stop(signal.SIGKILL)
            assert await _run_one(app) < WOKEN_WITHIN
            for node in redis_cluster.nodes:
                node.start()
            assert await asyncio.to_thread(wait_for, redis_cluster.is_whole, 60)
            await node_of_the_listener(redis_cluster.nodes)
    output = [r.getMessage() for r in caplog.records if r.getMessage().startswith("wakeups: ")]
    assert output[0].startswith("wakeups: Redis is not responding")
    assert output[-1] == "wakeups: listening again"


async def test_listener_and_publisher_leave_a_node_that_has_lost_the_others(
    redis_cluster: RedisCluster,
) -> None:
    """It still answers, so its connections say nothing."""
    async with listening(redis_cluster.url) as ear:
        alone = await node_of_the_listener(redis_cluster.nodes)
        others = [node for node in redis_cluster.nodes if node is not alone]
        bell = RedisNotifier(redis_cluster.url_of(alone), schema="tenure")
        bell.publish(["before"])
        assert await word(ear) == "before"
        # From now on it knows the others too.
        assert bell._publisher is not None
        bell._publisher._place = redis_address(redis_cluster.url)
        assert "OK" in ask(alone, "CLUSTER", "RESET", "HARD")
        await node_of_the_listener(others)
        async with asyncio.timeout(60):
            heard = ""
            while heard != "after":
                bell.publish(["after"])
                with suppress(TimeoutError):
                    heard = await asyncio.wait_for(word(ear), 1)
        bell.close()


def test_server_that_is_not_in_a_cluster_is_named_as_such() -> None:
    with Redis() as single, pytest.raises(Unreachable, match="cluster support disabled"):
        RedisNotifier(f"redis+cluster://127.0.0.1:{single.port}", schema="tenure").check()
