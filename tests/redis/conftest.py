"""A private Redis, an ear at it, and apps whose workers hear of jobs by it alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import pytest

from support.daemons import Redis
from tenure import Tenure
from tenure._notifier_redis import RedisNotifier
from tenure._rules import claiming
from tenure.config import DEFAULTS
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.store import Database

# What is not woken within this is not woken: the poll and the scans come later.
RARELY = timedelta(seconds=40)
WOKEN_WITHIN = 15.0
SLOW = replace(DEFAULTS, poll=RARELY)
MARKS = ("first mark", "second mark")


class Ear:
    """Hears what a worker would."""

    def __init__(self, bell: RedisNotifier) -> None:
        self._bell = bell
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(self) -> None:
        """Listen, and listen again when the connection broke."""
        while True:
            try:
                async for queue in self._bell.listen():
                    self._heard.put_nowait(queue)
            except Unreachable:
                await asyncio.sleep(0.1)

    async def next(self) -> str:
        """The next word, an empty one included."""
        async with asyncio.timeout(20):
            return await self._heard.get()

    async def all(self, app: Tenure) -> list[str]:
        """Everything that an app has rung since the last time, up to now."""
        assert app.engine.notifier is not None
        names: list[str] = []
        # What is said in one breath with the first mark is said before the second.
        for mark in MARKS:
            app.engine.notifier.publish([mark])
            while mark not in names:
                names.append(await self.next())
        return sorted(name for name in names if name not in ("", *MARKS))


@pytest.fixture
def redis() -> Iterator[Redis]:
    """A Redis of the test's own."""
    with Redis() as server:
        yield server


@pytest.fixture
async def ear(redis: Redis) -> AsyncIterator[Ear]:
    """An ear that listens."""
    bell = RedisNotifier(redis.url, schema="tenure")
    ear = Ear(bell)
    listening = asyncio.create_task(ear.listen())
    assert await ear.next() == ""
    yield ear
    listening.cancel()
    await asyncio.wait({listening})
    bell.close()


class Apps(Protocol):
    """Makes one more app on the test's database."""

    def __call__(self, redis: str | None, *, listen: bool = False) -> Tenure: ...


@pytest.fixture
async def apps(db: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Apps]:
    """Apps whose workers look for themselves too rarely for it to matter."""
    monkeypatch.setattr(claiming, "SCAN_AT_LEAST", RARELY)
    made: list[Tenure] = []

    def make(redis: str | None, *, listen: bool = False) -> Tenure:
        made.append(Tenure(db.url, redis=redis, listen=listen, defaults=SLOW))
        return made[-1]

    yield make
    for app in made:
        app.close()
        await app.aclose()
