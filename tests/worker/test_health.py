"""What makes a worker healthy: a child that works, or did within the last minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure._clock import boottime
from tenure.worker.child_process import ChildProcess, WorkerOptions
from tenure.worker.observability import WorkerHealth
from tenure.worker.parent import Crashes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLAN = WorkerOptions(
    target="jobs:app",
    queues=None,
    slots=1,
    processes=1,
    until_empty=False,
    schedules=False,
    grace=1.0,
    name="anna",
    log_level="info",
    log_format="text",
    metrics_host="127.0.0.1",
    metrics_port=None,
    watched=None,
)


@pytest.fixture
async def child() -> AsyncIterator[ChildProcess]:
    child = ChildProcess(PLAN, 7)
    yield child
    child.close()


def looks(health: WorkerHealth, children: list[ChildProcess], began: float, seconds: int) -> None:
    for second in range(1, seconds + 1):
        health.update(children, began + second, draining=False)


async def test_a_child_that_loads_for_longer_than_a_minute_makes_it_unhealthy(
    child: ChildProcess,
) -> None:
    now = boottime()
    health = WorkerHealth()
    looks(health, [child], now, 58)
    assert health.is_healthy
    looks(health, [child], now + 58, 5)
    assert health.none_for >= 60
    status, values = health.response({}, is_watched=True)
    assert (status, values["status"]) == (503, "not working")
    assert "child 7 has been loading the app for 6" in values["reason"]


async def test_a_child_works_while_both_of_its_threads_move(child: ChildProcess) -> None:
    """And while it waits for the database, before it has a service thread."""
    now = boottime()
    health = WorkerHealth()
    child.messages |= {"url": "postgresql://", "schema": "tenure"}
    child._board.record_loop_heartbeat(now)
    health.update([child], now + 1, draining=False)
    assert health.working == 1
    child._board.record_service_heartbeat(now)
    health.update([child], now + 1, draining=False)
    assert health.working == 1
    child._board.record_loop_heartbeat(now + 20)
    health.update([child], now + 21, draining=False)
    assert health.working == 0, "its service thread stands still"
    child._board.record_service_heartbeat(now + 40)
    looks(health, [child], now + 40, 80)
    assert health.working == 0, "its loop stands still"
    assert (
        "event loop of child 7 has been blocked"
        in health.response({}, is_watched=True)[1]["reason"]
    )


async def test_a_suspended_machine_and_a_drain_make_nothing_unhealthy(child: ChildProcess) -> None:
    now = boottime()
    health = WorkerHealth()
    health.update([child], now + 3600, draining=False)
    assert health.is_healthy
    for second in range(100):
        health.update([child], now + second, draining=True)
    assert health.is_healthy


def test_a_parent_that_does_not_look_is_stuck() -> None:
    status, values = WorkerHealth().response({}, is_watched=False)
    assert (status, values["status"]) == (503, "stuck")


def test_children_that_crash_often_are_started_ever_more_slowly() -> None:
    crashes = Crashes(1)
    pauses = [crashes.pause(n * 1.0) for n in range(13)]
    assert pauses == [0, 0, 0, 0, 0, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert crashes.pause(200.0) == 0


def test_the_crashes_of_many_children_are_counted_per_child() -> None:
    crashes = Crashes(4)
    assert [crashes.pause(n * 0.1) for n in range(23)] == [0] * 23
    assert crashes.pause(3.0) == 0.5
