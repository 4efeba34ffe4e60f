"""Services over a real store, one tick at a time, with both clocks set by hand."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tests.services.bench import Bench, HandBoot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tenure._runtime.claimer import Claimer

# Every service that reads the boot-time clock knows it by this name.
_READ_IN = (
    "_runtime.claimer",
    "_runtime.dispatcher",
    "_runtime.held_leases",
    "_runtime.renewer",
    "_runtime.settler",
    "_runtime.confirmer",
    "_runtime.watchdog",
    "_services.operations",
    "_services.rescuer",
    "_services.scheduler",
)


@pytest.fixture
async def db(db: Database) -> Database:
    """The clock is past the server's start: what was claimed before it is not counted as lost."""
    db.clock.advance(SECOND)
    return db


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> HandBoot:
    """The boot-time clock of all services, moved by hand."""
    clock = HandBoot()
    for name in _READ_IN:
        module = importlib.import_module(f"tenure.{name}")
        monkeypatch.setattr(module, "boottime", clock)
    return clock


@pytest.fixture
async def bench(db: Database, boot: HandBoot) -> AsyncIterator[Bench]:
    """What a service is made of, put together by hand."""
    bench = Bench(db, boot)
    yield bench
    await bench.close()


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long claimers wanted to rest, in order; none does."""
    wanted: list[float] = []

    async def rest(self: Claimer, seconds: float) -> None:
        wanted.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr("tenure._runtime.claimer.Claimer.sleep", rest)
    monkeypatch.setattr("random.uniform", lambda _low, high: high)
    return wanted
