"""Rescue: expired leases and their jobs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import RescuedLease
from tenure._model.outcome import Released, Succeeded
from tenure._model.worker import NewWorker
from tests.conformance.acts import (
    BY,
    a_job,
    begin,
    claim,
    claim_a_suspect,
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
    await begin(db, claimed)
    db.clock.advance(claimed.lease.ttl - MICROSECOND)
    assert (await db.run(db.store.leases.rescue())).jobs == []
    db.clock.advance(MICROSECOND)
    rescues = await db.run(db.store.leases.rescue())

    lease = claimed.lease
    assert rescues.jobs == [
        RescuedLease(
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
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert (job.losses, job.worker_losses, job.deaths) == (0, 1, 1)
    assert (job.claimed_by, job.lease_expires_at) == (None, None)
    assert (job.token, job.run_at) == (lease.token + 1, claimed.job.run_at)


async def test_the_reason_of_a_rescue_is_recorded(db: Database) -> None:
    """Shows R6."""
    claimed = await running(db)
    await lose(db, claimed)

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.outcome, attempt.claimed_by) == (AttemptOutcome.LOST, A)
    assert (attempt.token, attempt.ended_at) == (claimed.lease.token, db.clock.now)
    assert attempt.error_type == "LeaseExpired"
    assert attempt.error_message is not None
    assert "the lease expired and its worker did not give it back" in attempt.error_message
    assert f"worker {A}, last seen at an unknown time" in attempt.error_message


async def test_the_reason_of_a_rescue_names_the_worker_and_when_it_was_last_seen(
    db: Database,
) -> None:
    """Shows R6."""
    await db.run(db.store.workers.register(NewWorker(A, "me", "host", 1, "1.0", ["q"], 10)))
    seen = db.clock.now
    claimed = await running(db)
    await lose(db, claimed)

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert f"worker me, last seen at {seen:%F %T}Z" in str(attempt.error_message)
    assert f"lease expired at {db.clock.now:%F %T}Z" in str(attempt.error_message)


async def test_a_rescued_job_is_run_by_another_without_anybodys_help(db: Database) -> None:
    """Shows R7."""
    claimed = await running(db)
    await lose(db, claimed)
    again = await claim_one(db, worker=B)
    await settle(db, again, Succeeded())

    job = await get(db, claimed.job.id)
    assert (job.state, job.claimed_by, job.attempt) == (State.COMPLETED, B, 1)


async def test_a_second_rescue_finds_nothing(db: Database) -> None:
    """Shows R6."""
    claimed = await running(db)
    await lose(db, claimed)
    before = await get(db, claimed.job.id)

    assert (await db.run(db.store.leases.rescue())).jobs == []
    assert await get(db, claimed.job.id) == before


async def test_many_sweepers_at_once_rescue_each_lease_once(db: Database) -> None:
    """Shows R6."""
    await db.run(db.store.jobs.enqueue([a_job() for _ in range(60)]))
    claimed = await claim(db, count=60)
    await db.run(db.store.leases.renew([one.lease for one in claimed]))
    db.clock.advance(30 * SECOND)
    parties = [await db.party(f"sweeper {n}") for n in range(4)]
    answers = await asyncio.gather(
        *(party.run(db.store.leases.rescue(count=30)) for party in parties)
    )
    rest = await db.run(db.store.leases.rescue())

    ids = [job.job_id for answer in [*answers, rest] for job in answer.jobs]
    assert sorted(ids) == sorted(one.job.id for one in claimed)
    assert await count(db, "attempt") == 60
    assert await count(db, "job", "worker_losses <> 1 OR deaths <> 1 OR losses <> 0") == 0


async def test_the_tenth_worker_loss_is_poison(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(db, max_attempts=1, max_losses=1)
    for losses in range(1, 10):
        await lose(db, await claim_a_suspect(db))
        job = await get(db, job_id)
        assert (job.state, job.worker_losses, job.losses) == (State.QUEUED, losses, 0)
    last = await claim_a_suspect(db)
    rescued = await lose(db, last)

    assert (rescued.state, rescued.reason, rescued.worker_losses) == (State.FAILED, "poison", 10)
    job = await get(db, job_id)
    assert (job.state, job.done_reason) == (State.FAILED, "poison")
    assert (job.losses, job.worker_losses, job.deaths) == (0, 10, 10)
    assert job.token == last.lease.token + 1
    assert len(await db.run(db.store.jobs.attempts(job_id))) == 10


async def test_a_loss_gives_the_last_attempt_back(db: Database) -> None:
    """Shows R13."""
    claimed = await running(db, max_attempts=1, max_losses=1)
    await lose(db, claimed)
    job = await get(db, claimed.job.id)

    assert (job.state, job.attempt, job.worker_losses) == (State.QUEUED, 0, 1)


async def test_requested_cancel_wins(db: Database) -> None:
    claimed = await running(db, max_attempts=1, max_losses=0)
    await begin(db, claimed)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))
    db.clock.advance(30 * SECOND)
    [rescued] = (await db.run(db.store.leases.rescue())).jobs

    assert (rescued.state, rescued.reason) == (State.CANCELLED, "requested")
    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason, job.claimed_by) == (State.CANCELLED, "requested", A)


async def test_release_is_not_a_loss(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Released())

    job = await get(db, claimed.job.id)
    assert (job.attempt, job.losses, job.worker_losses, job.deaths) == (0, 0, 0, 0)


async def test_a_rescue_is_bounded_and_takes_the_oldest_first(db: Database) -> None:
    first = await running(db)
    db.clock.advance(SECOND)
    await running(db)
    db.clock.advance(30 * SECOND)
    rescues = await db.run(db.store.leases.rescue(count=1))

    assert [rescued.job_id for rescued in rescues.jobs] == [first.job.id]
    assert len((await db.run(db.store.leases.rescue())).jobs) == 1


async def test_a_floor_is_only_a_hint(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(60 * SECOND)
    floored = await db.run(db.store.leases.rescue(floor=db.clock.now - 10 * SECOND))
    assert floored.jobs == []

    assert [r.job_id for r in (await db.run(db.store.leases.rescue())).jobs] == [claimed.job.id]


async def test_a_row_that_is_locked_is_left_for_the_next_time(db: Database) -> None:
    """Shows R6."""
    locked, free = await running(db), await running(db)
    db.clock.advance(30 * SECOND)
    other = await db.caller("other")
    async with other.transaction() as session:
        await session.run(db.store.leases.guard(locked.lease))
        rescues = await db.run(db.store.leases.rescue())
    assert [rescued.job_id for rescued in rescues.jobs] == [free.job.id]

    rescues = await db.run(db.store.leases.rescue())
    assert [rescued.job_id for rescued in rescues.jobs] == [locked.job.id]


async def test_a_job_whose_key_is_locked_is_found_but_left(db: Database) -> None:
    claimed = await running(db, key="k", max_losses=0)
    await begin(db, claimed)
    db.clock.advance(30 * SECOND)
    other = await db.caller("other")
    async with other.transaction() as session:
        await session.run(db.store.jobs.enqueue([a_job(key="k")]))
        rescues = await db.run(db.store.leases.rescue())
    assert (rescues.jobs, rescues.found) == ([], 1)

    assert (await db.run(db.store.leases.rescue())).jobs[0].reason == "lost"
    assert (await get(db, claimed.job.id)).state is State.FAILED


@pytest.mark.parametrize("queue", ["q", "*"])
async def test_a_claim_from_a_limited_queue_sweeps_it_first(db: Database, queue: str) -> None:
    """Shows R6. Shows R9."""
    await db.run(db.store.queues.limit(queue, 1, BY))
    claimed = await running(db)
    await begin(db, claimed)
    db.clock.advance(30 * SECOND)
    claims = await db.run(db.store.leases.claim(lanes("q"), count=5, worker=B))

    assert [one.job.id for one in claims.jobs] == [claimed.job.id]
    assert claims.jobs[0].job.worker_losses == 1
