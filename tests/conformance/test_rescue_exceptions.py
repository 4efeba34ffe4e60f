"""Leases that ran out and that a rescue leaves: the caller's own, and those it waited long for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.race_helpers import waiting
from support.store import SECOND, A, B, lanes
from tenure._model.job import State
from tests.conformance.acts import (
    BY,
    OUTAGE,
    begin,
    claim_one,
    enqueue,
    get,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database


async def test_a_rescue_leaves_the_callers_own_leases_and_takes_those_of_others(
    db: Database,
) -> None:
    """Shows R6. Its own it gives back itself, and says why."""
    mine = await running(db)
    await enqueue(db)
    theirs = await claim_one(db, worker=B)
    db.clock.advance(30 * SECOND)

    rescues = await db.run(db.store.leases.rescue(kept=[mine.lease]))
    assert [one.job_id for one in rescues.jobs] == [theirs.job.id]
    assert (await get(db, mine.job.id)).state is State.RUNNING
    assert (await settle(db, mine, OUTAGE)).late
    assert (await get(db, mine.job.id)).state is State.QUEUED

    again = await claim_one(db)
    db.clock.advance(30 * SECOND)
    # A lease is kept by its whole name: that B names a job of A's keeps nothing.
    misnamed = again.lease._replace(claimed_by=B)
    rescues = await db.run(db.store.leases.rescue(kept=[misnamed]))
    assert [one.job_id for one in rescues.jobs] == [again.job.id]


async def test_a_claim_from_a_limited_queue_leaves_the_callers_own_leases(db: Database) -> None:
    """Shows R9. It still counts as running."""
    await db.run(db.store.queues.limit("q", 1, BY))
    mine = await running(db)
    await enqueue(db)
    db.clock.advance(30 * SECOND)
    request = {"count": 5, "worker": A, "kept": [mine.lease]}
    assert (await db.run(db.store.leases.claim(lanes("q"), **request))).jobs == []  # type: ignore[arg-type]

    claims = await db.run(db.store.leases.claim(lanes("q"), count=5, worker=B))
    assert [one.job.id for one in claims.jobs] == [mine.job.id]


async def test_a_rescue_that_waited_long_for_the_table_takes_nothing(db: Database) -> None:
    """The holders waited too, and come first: their renewals are in the same line."""
    blocker, rescuer = await db.party("blocker"), await db.party("rescuer")
    await rescuer.run(
        db.store.leases.rescue()
    )  # as any sweeper has, so that the statement is prepared
    claimed = await running(db)
    await begin(db, claimed)
    db.clock.advance(30 * SECOND)

    async with blocker.connection.transaction():
        await blocker.connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        sweep = await waiting(db, rescuer, db.store.leases.rescue())
        await blocker.connection.execute("SELECT pg_sleep(1.1)")
    assert (await sweep).found == 0
    assert (await get(db, claimed.job.id)).state is State.RUNNING

    [rescued] = (await rescuer.run(db.store.leases.rescue())).jobs
    assert rescued.job_id == claimed.job.id


async def test_a_claim_from_a_limited_queue_that_waited_long_for_the_table_rescues_nothing(
    db: Database,
) -> None:
    """Shows R9. Its sweep counts the wait from the moment it had the queue's row."""
    await db.run(db.store.queues.limit("q", 1, BY))
    blocker, claimer = await db.party("blocker"), await db.party("claimer")
    request = {"count": 5, "worker": B, "limited": True}
    await claimer.run(db.store.leases.claim(lanes("q"), **request))  # type: ignore[arg-type]
    claimed = await running(db)
    db.clock.advance(30 * SECOND)

    async with blocker.connection.transaction():
        await blocker.connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        claims = await waiting(db, claimer, db.store.leases.claim(lanes("q"), **request))  # type: ignore[arg-type]
        await blocker.connection.execute("SELECT pg_sleep(1.1)")
    assert (await claims).jobs == []
    assert (await get(db, claimed.job.id)).state is State.RUNNING


async def test_a_claim_that_waited_long_for_a_limited_queue_still_rescues_it(db: Database) -> None:
    """Shows R9."""
    await db.run(db.store.queues.limit("q", 1, BY))
    claimed = await running(db)
    db.clock.advance(30 * SECOND)
    blocker, claimer = await db.party("blocker"), await db.party("claimer")

    async with blocker.connection.transaction():
        await blocker.connection.execute("SELECT FROM tenure.queue FOR UPDATE")
        request = db.store.leases.claim(lanes("q"), count=5, worker=B, limited=True)
        claims = await waiting(db, claimer, request)
        await blocker.connection.execute("SELECT pg_sleep(1.1)")
    assert [one.job.id for one in (await claims).jobs] == [claimed.job.id]


async def test_a_rescue_that_waited_shortly_for_the_table_takes_what_ran_out(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(30 * SECOND)
    blocker, rescuer = await db.party("blocker"), await db.party("rescuer")

    async with blocker.connection.transaction():
        await blocker.connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        sweep = await waiting(db, rescuer, db.store.leases.rescue())
    assert [one.job_id for one in (await sweep).jobs] == [claimed.job.id]
