"""Queue names that workers invent cost other workers nothing, and the server keeps few of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tenure.admin import By
from tenure.errors import QuotaExceeded
from tenure.gateway import WorkerInfo
from tenure.gateway.long_poll import MOST_NAMES

if TYPE_CHECKING:
    from tenure import Tenure
    from tenure.gateway import Remote

ME = WorkerInfo(name="here", language="none")
BY = By("ops")


async def test_a_claim_reads_the_lanes_of_its_own_queues_only(app: Tenure, remote: Remote) -> None:
    poll = remote._waiting
    requested: list[int] = []
    claim = app.engine.store.leases.claim
    for start in range(0, MOST_NAMES + 300, 100):
        names = [f"invented.{n}" for n in range(start, start + 100)]
        await remote.acquire("other", names, ME)

    def counted(lanes, **options):  # type: ignore[no-untyped-def] # passes everything on
        requested.append(len(lanes))
        return claim(lanes, **options)

    app.engine.store.leases.claim = counted  # type: ignore[method-assign] # counts the lanes
    await remote.acquire("me", ["mine"], ME)

    assert set(requested) == {10}
    assert len(poll._names) <= MOST_NAMES


async def test_forgotten_names_are_served_all_the_same(app: Tenure, remote: Remote) -> None:
    waiting = asyncio.create_task(remote.acquire("me", ["mine"], ME, wait=timedelta(seconds=20)))
    await asyncio.sleep(0)
    for start in range(0, MOST_NAMES + 100, 100):
        await remote.acquire("other", [f"invented.{n}" for n in range(start, start + 100)], ME)
    made = await app.admin.jobs.aenqueue("task", {}, BY, queue="mine")

    [work] = (await waiting).work
    assert work.job.id == made.id


async def test_too_many_sessions_of_one_holder_are_refused(remote: Remote) -> None:
    kept = await remote.acquire("me", ["q"], ME, max_sessions=2)
    await remote.acquire("me", ["q"], ME, max_sessions=2)
    with pytest.raises(QuotaExceeded, match="sessions"):
        await remote.acquire("me", ["q"], ME, max_sessions=2)
    await remote.acquire("me", ["q"], ME, session=kept.session, max_sessions=2)
    await remote.acquire("another", ["q"], ME, max_sessions=2)
