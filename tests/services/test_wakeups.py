"""Wakeups: a commit wakes the claimer; a broken connection is replaced, and nothing is lost."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import undone
from tenure._model.job import NewJob
from tenure._services.wakeups import Wakeups

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tests.services.bench import Bench

TERMINATE = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name = 'wakeups'"
)


class Ear:
    """Hears what claimer and scheduler would."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    def wake(self, queue: str = "") -> None:
        self._heard.put_nowait(queue)

    async def next(self) -> str:
        async with asyncio.timeout(10):
            return await self._heard.get()

    @property
    def silent(self) -> bool:
        return self._heard.empty()


@pytest.fixture
async def ear(bench: Bench, db: Database) -> AsyncIterator[Ear]:
    """An ear at a service that listens."""
    ear = Ear()
    link = bench.link("wakeups")
    listen = partial(link.listen, db.store.jobs.channel)
    wakeups = Wakeups(listen, ear.wake, close=link.close)
    run = asyncio.create_task(wakeups.run())
    assert await ear.next() == ""
    yield ear
    wakeups.stop()
    async with asyncio.timeout(5):
        await run


async def test_a_commit_wakes_and_what_is_rolled_back_does_not(ear: Ear, db: Database) -> None:
    other, caller = await db.party("other"), await db.caller("caller")
    async with undone(caller) as tx:
        await tx.run(db.store.jobs.enqueue([NewJob("work", queue="undone")]))
    async with caller.transaction() as tx:
        await tx.run(db.store.jobs.enqueue([NewJob("work", queue="mail")]))
        await other.run(db.store.jobs.enqueue([NewJob("work", queue="other")]))
        assert await ear.next() == "other"
        assert ear.silent
    assert await ear.next() == "mail"


async def test_broken_connection_is_replaced_and_the_claimer_polls(ear: Ear, db: Database) -> None:
    """What was sent meanwhile was not heard: the first word after is for every queue."""
    await db.fetch(TERMINATE)
    assert await ear.next() == ""

    await db.run(db.store.jobs.enqueue([NewJob("work", queue="mail")]))
    assert await ear.next() == "mail"


async def test_it_can_be_stopped_before_it_began_and_while_it_listens(bench: Bench) -> None:
    for passes in range(4):
        link = bench.link("wakeups")
        listen = partial(link.listen, "channel")
        wakeups = Wakeups(listen, Ear().wake, close=link.close)
        run = asyncio.create_task(wakeups.run())
        for _ in range(passes):
            await asyncio.sleep(0.01)
        wakeups.stop()
        async with asyncio.timeout(5):
            await run
