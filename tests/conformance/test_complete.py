"""Completing many jobs by one short statement: jobs without a key, a result or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.store import SECOND, B
from tenure._model.job import State
from tests.conformance.acts import claim, claim_one, enqueue, get, lose, running

if TYPE_CHECKING:
    from support.store import Database


async def test_all_that_are_held_are_completed(db: Database) -> None:
    for _ in range(3):
        await enqueue(db)
    jobs = await claim(db, count=3)
    leases = [claimed.lease for claimed in reversed(jobs)]

    assert list(await db.run(db.store.settlement.complete(leases))) == []
    for claimed in jobs:
        job = await get(db, claimed.job.id)
        assert (job.state, job.done_reason, job.result) == (State.COMPLETED, "worker_done", None)
        [attempt] = await db.run(db.store.jobs.attempts(job.id))
        assert (attempt.outcome, attempt.log) == ("completed", None)


async def test_a_lease_that_is_lost_is_returned_and_its_job_is_untouched(db: Database) -> None:
    """Shows R5."""
    lost = await running(db)
    await lose(db, lost)
    again = await claim_one(db, worker=B)
    mine = await running(db)
    before = await get(db, lost.job.id)

    left = await db.run(db.store.settlement.complete([lost.lease, mine.lease]))

    assert list(left) == [lost.lease]
    assert await get(db, lost.job.id) == before
    assert again.job.id == lost.job.id
    assert (await get(db, mine.job.id)).state is State.COMPLETED


async def test_a_job_with_a_key_is_returned(db: Database) -> None:
    """Its key must end with it, which the general statement does."""
    keyed = await running(db, key="k")
    assert list(await db.run(db.store.settlement.complete([keyed.lease]))) == [keyed.lease]
    assert (await get(db, keyed.job.id)).state is State.RUNNING


async def test_a_completion_after_the_lease_is_late(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl + SECOND)
    assert list(await db.run(db.store.settlement.complete([claimed.lease]))) == []
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.late
