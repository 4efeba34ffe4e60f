"""The leases a process holds, and the thread of what must not share the handlers' fate."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import A
from tenure._runtime.held_leases import HeldLeases, StopReason
from tenure._runtime.lease_board import LeaseBoard, Phase
from tenure._services.base import Service
from tenure._services.thread import ServiceThread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.bench import Bench


@pytest.fixture
def board(bench: Bench) -> Iterator[LeaseBoard]:
    """A board that the bench's holdings are shown on."""
    fd = LeaseBoard.make(places=4)
    board = LeaseBoard(fd, places=4)
    bench.held_leases = HeldLeases(board)
    bench.settler._held_leases = bench.held_leases
    yield board
    os.close(fd)


async def test_what_is_held_is_on_the_board_from_claim_to_settle(
    bench: Bench, board: LeaseBoard
) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    [entry] = board.entries(A)
    assert (entry.lease, entry.phase, entry.stop_at) == (held.lease, Phase.STARTED, 1027.0)
    assert (entry.attempt, entry.limit) == (1, 3)

    held.extend(1010.0)
    assert board.summary()[0] == 1037.0
    held.mark(Phase.ENDED)
    assert [each.phase for each in board.entries(A)] == [Phase.ENDED]
    bench.held_leases.drop(held)
    assert list(board.entries(A)) == []


async def test_what_was_dropped_touches_no_place_that_another_has_now(
    bench: Bench, board: LeaseBoard
) -> None:
    """Two actors: a renewal's answer comes after the settle, when the place is used again."""
    bench.task()
    dispatcher = bench.dispatcher()
    [old] = await bench.start(dispatcher)
    bench.held_leases.drop(old)
    bench.held_leases.drop(old)
    [new] = await bench.start(dispatcher)
    old.extend(5000.0)
    old.mark(Phase.ENDED)

    [entry] = board.entries(A)
    assert (entry.lease, entry.phase, entry.stop_at) == (new.lease, Phase.STARTED, 1027.0)


async def test_trust_does_not_go_back_when_a_report_and_a_renewal_cross(bench: Bench) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.extend(1010.0)
    held.extend(1005.0)

    assert (held.sent_at, held.trusted_until) == (1010.0, 1035.0)


async def test_handler_gets_one_stop_request_and_another_for_its_lease(bench: Bench) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    [running] = bench.loop_way.started
    for why in (
        StopReason.DRAIN,
        StopReason.CANCEL,
        StopReason.DRAIN,
        StopReason.LEASE,
        StopReason.LEASE,
        StopReason.DRAIN,
    ):
        held.stop(why, bench.boot.now)

    assert running.requested == [StopReason.DRAIN, StopReason.LEASE]
    assert (held.stopping, held.lease_state.lost) == (StopReason.LEASE, True)


class Beating(Service):
    """Notes on which thread it ticks."""

    def __init__(self) -> None:
        super().__init__(timedelta(seconds=0.001))
        self.threads: set[int] = set()
        self.ticks = 0

    async def tick(self) -> int:
        self.threads.add(threading.get_ident())
        self.ticks += 1
        return 0


async def test_service_thread_continues_while_the_loop_is_blocked() -> None:
    """Shows R3."""
    services: list[Beating] = []
    lines: list[str] = []

    def make() -> list[Beating]:
        services.append(Beating())
        return services

    async def last_words() -> None:
        lines.append("farewell")

    service_thread = ServiceThread(make)
    service_thread.start()
    seen = threading.Event()
    service_thread.call(seen.set)
    # This thread, and with it this loop, waits here without a pause.
    assert seen.wait(5)
    before = services[0].ticks
    for _ in range(500):
        if services[0].ticks > before + 2:
            break
        threading.Event().wait(0.01)
    ticks = services[0].ticks
    async with asyncio.timeout(10):
        await service_thread.stop(last_words)

    assert ticks > before + 2
    assert services[0].threads.isdisjoint({threading.get_ident()})
    assert lines == ["farewell"]
    assert not service_thread._thread.is_alive() or service_thread._ended.is_set()


async def test_a_keeper_can_be_started_and_stopped_many_times() -> None:
    for _ in range(20):
        service_thread = ServiceThread(lambda: [Beating()])
        service_thread.start()
        async with asyncio.timeout(10):
            await service_thread.stop()
        service_thread.call(lambda: None)
