"""Rescue: leases that are over, and what becomes of their jobs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.ending import Ending
from tenure._model.job import State
from tenure._model.lease import Rescued
from tenure._model.outcome import Released, Succeeded
from tests.conformance.acts import (
    BY,
    a_job,
    claim,
    claim_one,
    count,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database

MICROSECOND = timedelta(microseconds=1)


async def test_a_job_whose_lease_is_over_goes_back_to_its_queue(db: Database) -> None:
    """Shows R6. Shows R7."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl - MICROSECOND)
    assert (await db.run(db.store.rescue())).jobs == []
    db.clock.advance(MICROSECOND)
    rescues = await db.run(db.store.rescue())

    lease = claimed.lease
    assert rescues.jobs == [
        Rescued(
            lease.job_id,
            lease.token,
            A,
            "q",
            State.QUEUED,
            1,
            None,
            task=claimed.job.task,
            attempt=1,
            max_attempts=claimed.job.max_attempts,
        )
    ]
    assert (rescues.found, rescues.now) == (1, db.clock.now)
    job = await get(db, lease.job_id)
    assert (job.state, job.attempt, job.losses) == (State.QUEUED, 1, 1)
    assert (job.claimed_by, job.lease_expires_at) == (None, None)
    assert (job.token, job.run_at) == (lease.token + 1, claimed.job.run_at)


async def test_the_reason_of_a_rescue_is_recorded(db: Database) -> None:
    """Shows R6."""
    claimed = await running(db)
    await lose(db, claimed)

    [attempt] = await db.run(db.store.attempts(claimed.job.id))
    assert (attempt.outcome, attempt.claimed_by) == (Ending.LOST, A)
    assert (attempt.token, attempt.ended_at) == (claimed.lease.token, db.clock.now)


async def test_a_rescued_job_is_run_by_another_without_anybodys_help(db: Database) -> None:
    """Shows R7."""
    claimed = await running(db)
    await lose(db, claimed)
    again = await claim_one(db, worker=B)
    await settle(db, again, Succeeded())

    job = await get(db, claimed.job.id)
    assert (job.state, job.claimed_by, job.attempt) == (State.COMPLETED, B, 2)


async def test_a_second_rescue_finds_nothing(db: Database) -> None:
    """Shows R6."""
    claimed = await running(db)
    await lose(db, claimed)
    before = await get(db, claimed.job.id)

    assert (await db.run(db.store.rescue())).jobs == []
    assert await get(db, claimed.job.id) == before


async def test_many_sweepers_at_once_rescue_each_lease_once(db: Database) -> None:
    """Shows R6."""
    await db.run(db.store.enqueue([a_job() for _ in range(60)]))
    claimed = await claim(db, count=60)
    db.clock.advance(30 * SECOND)
    parties = [await db.party(f"sweeper {n}") for n in range(4)]
    answers = await asyncio.gather(*(party.run(db.store.rescue(count=30)) for party in parties))
    rest = await db.run(db.store.rescue())

    ids = [job.job_id for answer in [*answers, rest] for job in answer.jobs]
    assert sorted(ids) == sorted(one.job.id for one in claimed)
    assert await count(db, "attempt") == 60
    assert await count(db, "job", "losses <> 1") == 0


async def test_the_third_loss_is_poison(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(db, max_attempts=9)
    for losses in (1, 2):
        await lose(db, await claim_one(db))
        assert (await get(db, job_id)).losses == losses
    last = await claim_one(db)
    db.clock.advance(last.lease.ttl)
    [rescued] = (await db.run(db.store.rescue())).jobs

    assert (rescued.state, rescued.reason, rescued.losses) == (State.FAILED, "poison", 3)
    job = await get(db, job_id)
    assert (job.state, job.done_reason, job.losses) == (State.FAILED, "poison", 3)
    assert job.token == last.lease.token + 1
    assert len(await db.run(db.store.attempts(job_id))) == 3


async def test_a_loss_at_the_cap_of_attempts_ends_the_job_as_lost(db: Database) -> None:
    """Shows R13."""
    claimed = await running(db, max_attempts=1)
    await lose(db, claimed)
    job = await get(db, claimed.job.id)

    assert (job.state, job.done_reason, job.losses) == (State.FAILED, "lost", 1)


async def test_poison_wins_where_both_hold(db: Database) -> None:
    claimed = await running(db, max_attempts=1, max_losses=1)
    await lose(db, claimed)

    assert (await get(db, claimed.job.id)).done_reason == "poison"


async def test_a_cancel_that_was_asked_for_wins_over_all(db: Database) -> None:
    claimed = await running(db, max_attempts=1, max_losses=1)
    await db.run(db.store.cancel([claimed.job.id], BY))
    db.clock.advance(30 * SECOND)
    [rescued] = (await db.run(db.store.rescue())).jobs

    assert (rescued.state, rescued.reason) == (State.CANCELLED, "requested")
    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason, job.claimed_by) == (State.CANCELLED, "requested", A)


async def test_a_release_is_no_loss(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Released())

    assert (await get(db, claimed.job.id)).losses == 0


async def test_a_rescue_is_bounded_and_takes_the_oldest_first(db: Database) -> None:
    first = await running(db)
    db.clock.advance(SECOND)
    await running(db)
    db.clock.advance(30 * SECOND)
    rescues = await db.run(db.store.rescue(count=1))

    assert [rescued.job_id for rescued in rescues.jobs] == [first.job.id]
    assert len((await db.run(db.store.rescue())).jobs) == 1


async def test_a_floor_is_only_a_hint(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(60 * SECOND)
    floored = await db.run(db.store.rescue(floor=db.clock.now - 10 * SECOND))
    assert floored.jobs == []

    assert [r.job_id for r in (await db.run(db.store.rescue())).jobs] == [claimed.job.id]


async def test_a_row_that_is_locked_is_left_for_the_next_time(db: Database) -> None:
    """Shows R6."""
    locked, free = await running(db), await running(db)
    db.clock.advance(30 * SECOND)
    other = await db.caller("other")
    async with other.transaction() as session:
        await session.run(db.store.guard(locked.lease))
        rescues = await db.run(db.store.rescue())
    assert [rescued.job_id for rescued in rescues.jobs] == [free.job.id]

    rescues = await db.run(db.store.rescue())
    assert [rescued.job_id for rescued in rescues.jobs] == [locked.job.id]


async def test_a_job_whose_key_is_locked_is_found_but_left(db: Database) -> None:
    claimed = await running(db, key="k", max_losses=1)
    db.clock.advance(30 * SECOND)
    other = await db.caller("other")
    async with other.transaction() as session:
        await session.run(db.store.enqueue([a_job(key="k")]))
        rescues = await db.run(db.store.rescue())
    assert (rescues.jobs, rescues.found) == ([], 1)

    assert (await db.run(db.store.rescue())).jobs[0].reason == "poison"
    assert (await get(db, claimed.job.id)).state is State.FAILED


@pytest.mark.parametrize("queue", ["q", "*"])
async def test_a_claim_from_a_limited_queue_sweeps_it_first(db: Database, queue: str) -> None:
    """Shows R6. Shows R9."""
    await db.run(db.store.limit_queue(queue, 1, BY))
    claimed = await running(db)
    db.clock.advance(30 * SECOND)
    claims = await db.run(db.store.claim(lanes("q"), count=5, worker=B))

    assert [one.job.id for one in claims.jobs] == [claimed.job.id]
    assert claims.jobs[0].job.losses == 1
