"""The loop around a tick, and the order in which services start and stop."""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tenure._services.base import Service, Supervisor
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = timedelta(hours=1)


class Counting(Service):
    """A service that counts its passes, and does in each what the test says."""

    def __init__(
        self, act: Callable[[Counting], int] = lambda _: 0, pause: timedelta = HOUR
    ) -> None:
        super().__init__(pause)
        self.passes = 0
        self.rests: list[float] = []
        self.closed = 0
        self._act = act

    async def tick(self) -> int:
        self.passes += 1
        return self._act(self)

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        await super().sleep(seconds)

    async def close(self) -> None:
        self.closed += 1


async def ended(service: Service) -> None:
    """Run the service to its end, which must come by itself."""
    async with asyncio.timeout(5):
        await service.run()


async def test_after_a_pass_that_did_something_the_next_follows_at_once() -> None:
    def act(service: Counting) -> int:
        if service.passes == 5:
            service.stop()
        return 1

    service = Counting(act)
    await ended(service)

    assert (service.passes, service.rests, service.closed) == (5, [], 1)


async def test_a_nudge_during_a_pass_is_not_forgotten() -> None:
    """An hour's pause, and the next pass is there at once."""

    def act(service: Counting) -> int:
        if service.passes == 2:
            service.stop()
        service.run_soon()
        return 0

    service = Counting(act)
    await ended(service)

    assert service.passes == 2


async def test_a_nudge_ends_a_pause() -> None:
    service = Counting()
    run = asyncio.create_task(service.run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert (service.passes, len(service.rests)) == (1, 1)
    service.run_soon()
    for _ in range(5):
        await asyncio.sleep(0)
    service.stop()
    async with asyncio.timeout(5):
        await run

    assert service.passes == 2


@pytest.mark.parametrize("error", [Unreachable("away"), RuntimeError("a bug")])
async def test_an_error_ends_no_service_and_slows_it_down_more_and_more(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Up to a limit; and once it goes well again, it is as quick as before."""
    monkeypatch.setattr(random, "uniform", lambda _low, _high: 1.0)

    class Failing(Counting):
        async def sleep(self, seconds: float) -> None:
            self.rests.append(seconds)

    def act(service: Counting) -> int:
        if service.passes == 12:
            service.stop()
        if service.passes <= 10:
            raise error
        return 0

    service = Failing(act, pause=timedelta(seconds=0.1))
    with caplog.at_level(logging.INFO, "tenure"):
        await ended(service)

    assert service.rests == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0, 0.1]
    assert service.closed == 1
    output = [record.levelname for record in caplog.records]
    # An outage is told once, and its end; a bug each time, with its traceback.
    assert output == (["WARNING"] if isinstance(error, Unreachable) else ["ERROR"] * 10) + ["INFO"]


async def test_the_pauses_of_many_services_do_not_fall_together() -> None:
    service = Counting(pause=timedelta(seconds=1))
    waits = {service._next_delay() for _ in range(100)}

    assert len(waits) > 90
    assert min(waits) >= 0.8
    assert max(waits) <= 1.2


async def test_a_service_that_is_stopped_before_it_began_makes_no_pass() -> None:
    service = Counting()
    service.stop()
    await ended(service)

    assert (service.passes, service.closed) == (0, 1)


async def test_a_service_can_be_started_and_stopped_at_any_instant() -> None:
    """A thousand times, with everything in between."""
    chance = random.Random(5)  # noqa: S311 - the same every time
    for _ in range(1000):
        service = Counting(lambda _: chance.randrange(2), pause=timedelta(seconds=0.001))
        run = asyncio.create_task(service.run())
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                service.run_soon()
        service.stop()
        async with asyncio.timeout(2):
            await run
        assert service.closed == 1


async def test_services_start_in_order_and_stop_in_reverse() -> None:
    """That order is the shutdown contract: each has ended before the next is told."""
    lines: list[str] = []

    class Speaking(Counting):
        async def tick(self) -> int:
            lines.append(f"{self.name} ticks")
            return 0

        def stop(self) -> None:
            lines.append(f"{self.name} stops")
            super().stop()

        async def close(self) -> None:
            lines.append(f"{self.name} closed")

    services = [Speaking() for _ in "abc"]
    for service, name in zip(services, "abc", strict=True):
        service.name = name
    supervisor = Supervisor(services)
    supervisor.start()
    await asyncio.sleep(0)
    assert lines == ["a ticks", "b ticks", "c ticks"]
    lines.clear()
    async with asyncio.timeout(5):
        await supervisor.stop_all()

    assert lines == ["c stops", "c closed", "b stops", "b closed", "a stops", "a closed"]


async def test_a_service_that_does_not_stop_is_cancelled_and_the_others_stop_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Stuck(Counting):
        name = "stuck"

        async def tick(self) -> int:
            await asyncio.Event().wait()
            return 0

    first, stuck = Counting(), Stuck()
    supervisor = Supervisor([first, stuck])
    supervisor.start()
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        for each in (stuck, first):
            await supervisor.stop(each, within=0.01)

    assert (first.closed, stuck.closed) == (1, 1)
    assert "stuck: did not stop" in caplog.text


async def test_stopping_twice_is_harmless() -> None:
    service = Counting()
    supervisor = Supervisor([service])
    await supervisor.stop_all()
    supervisor.start()
    await supervisor.stop_all()
    await supervisor.stop_all()

    assert service.closed == 1
