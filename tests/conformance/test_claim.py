"""Claim: one job moves from queued to running, once, and its lease is recorded."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.job import State
from tenure._model.outcome import Failed, Released, Snoozed, Succeeded
from tenure._model.queue import Floor, Lane
from tests.conformance.acts import (
    BY,
    ERROR,
    a_job,
    claim,
    claim_one,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database, Party
    from tenure._model.ids import JobId, WorkerId


async def test_a_claimed_job_cannot_be_claimed_again(db: Database) -> None:
    """Shows R1."""
    job_id = await enqueue(db)
    [claimed] = await claim(db, worker=A)

    assert claimed.job.id == job_id
    assert (await get(db, job_id)).state is State.RUNNING
    assert await claim(db, worker=B) == []


async def test_two_workers_at_once_never_claim_the_same_job(db: Database) -> None:
    """Shows R1."""
    jobs = await db.run(db.store.jobs.enqueue([a_job() for _ in range(100)]))
    one, two = await db.party("one"), await db.party("two")

    async def take_all(party: Party, worker: WorkerId) -> list[JobId]:
        taken: list[JobId] = []
        while True:
            claims = await party.run(db.store.leases.claim(lanes("q"), count=3, worker=worker))
            if not claims.jobs:
                return taken
            taken += [claimed.job.id for claimed in claims.jobs]

    a, b = await asyncio.gather(take_all(one, A), take_all(two, B))
    assert sorted(a + b) == [job.id for job in jobs]


async def test_a_row_that_another_claim_holds_is_passed_over(db: Database) -> None:
    """Shows R1."""
    first, second = [
        answer.id for answer in await db.run(db.store.jobs.enqueue([a_job(), a_job()]))
    ]
    other = await db.caller("other")
    async with other.transaction() as session:
        claims = await session.run(db.store.leases.claim(lanes("q"), count=1, worker=B))
        assert [claimed.job.id for claimed in claims.jobs] == [first]
        [claimed] = await claim(db, count=5)

    assert claimed.job.id == second


async def test_a_claim_records_its_owner_and_when_the_lease_ends(db: Database) -> None:
    """Shows R2."""
    await enqueue(db)
    db.clock.advance(5 * SECOND)
    claimed = await claim_one(db, worker=B)
    job = await get(db, claimed.job.id)

    assert (job.claimed_by, job.claimed_at) == (B, db.clock.now)
    assert job.lease_expires_at == db.clock.now + 30 * SECOND
    assert (claimed.lease.job_id, claimed.lease.token) == (job.id, job.token)
    assert (claimed.lease.claimed_by, claimed.lease.ttl) == (B, 30 * SECOND)


async def test_the_time_of_a_lease_is_the_databases_own_in_utc(db: Database) -> None:
    """Shows R2."""
    await db.run(db.real.jobs.enqueue([a_job()]))
    [before] = await db.fetch("SELECT clock_timestamp() AS now")
    claims = await db.run(db.real.leases.claim(lanes("q"), count=1, worker=A))
    [after] = await db.fetch("SELECT clock_timestamp() AS now")
    job = claims.jobs[0].job

    assert job.claimed_at is not None
    assert job.lease_expires_at is not None
    assert before["now"] < job.claimed_at < after["now"]
    assert abs(job.lease_expires_at - job.claimed_at - 30 * SECOND) < timedelta(milliseconds=10)
    assert job.claimed_at.utcoffset() == timedelta(0)


async def test_a_job_is_claimed_only_when_it_is_due(db: Database) -> None:
    """Shows R11."""
    await enqueue(db, delay=10 * SECOND)
    db.clock.advance(10 * SECOND - timedelta(microseconds=1))
    assert await claim(db) == []

    db.clock.advance(timedelta(microseconds=1))
    assert len(await claim(db)) == 1


async def test_attempts_are_counted_at_the_claim(db: Database) -> None:
    """Shows R13."""
    claimed = await running(db, max_attempts=3)
    assert claimed.job.attempt == 1

    await settle(db, claimed, Failed(ERROR, after=SECOND))
    db.clock.advance(SECOND)
    assert (await claim_one(db)).job.attempt == 2


async def test_the_token_only_grows_and_is_never_reset(db: Database) -> None:
    """Shows R20."""
    job_id = await enqueue(db, max_losses=9)
    tokens = [(await get(db, job_id)).token]
    for outcome in (Released(), Snoozed(0 * SECOND), None, Failed(ERROR, retryable=False)):
        claimed = await claim_one(db)
        tokens.append(claimed.lease.token)
        if outcome is None:
            await lose(db, claimed)
            tokens.append((await get(db, job_id)).token)
        else:
            await settle(db, claimed, outcome)
    await db.run(db.store.job_commands.retry([job_id], BY))
    tokens.append((await get(db, job_id)).token)
    tokens.append((await claim_one(db)).lease.token)
    await db.run(db.store.job_commands.revoke([job_id], BY))
    tokens.append((await get(db, job_id)).token)

    assert tokens == sorted(set(tokens))


async def test_the_token_begins_with_the_servers_timeline(db: Database) -> None:
    """So that a claim after a failover is above every claim that the failover lost."""
    claimed = await running(db)
    [row] = await db.fetch("SELECT timeline_id FROM pg_control_checkpoint()")

    assert claimed.lease.token >> 40 == row["timeline_id"]


async def test_an_idle_claim_answers_with_a_time_before_it_began(db: Database) -> None:
    """A floor must not pass what the claim could not see yet."""
    claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A))

    assert (claims.jobs, claims.found, claims.limited) == ([], 0, False)
    assert (claims.skipped_queues, claims.now) == (frozenset(), db.clock.now - 10 * SECOND)


async def test_claim_takes_at_most_its_count(db: Database) -> None:
    await db.run(db.store.jobs.enqueue([a_job() for _ in range(5)]))

    assert len(await claim(db, count=3)) == 3
    assert len(await claim(db, count=3)) == 2


async def test_a_floor_hides_what_lies_below_it_except_what_was_given_back(db: Database) -> None:
    given_back = await running(db)
    await settle(db, given_back, Released())
    below = await enqueue(db)
    floor = Floor(db.clock.now, below)
    db.clock.advance(SECOND)
    above = await enqueue(db)
    claims = await db.run(db.store.leases.claim([Lane("q", 5, floor=floor)], count=9, worker=A))

    assert [claimed.job.id for claimed in claims.jobs] == [given_back.job.id, above]
    assert [claimed.returned for claimed in claims.jobs] == [True, False]
    assert [claimed.job.id for claimed in await claim(db)] == [below]


async def waits_for_long(db: Database, name: str) -> bool:
    rows = await db.fetch(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock' "
        "AND clock_timestamp() - query_start > interval '100 ms'",
        name,
    )
    return bool(rows)


@pytest.mark.parametrize("patient", [False, True])
async def test_a_scan_from_zero_may_take_longer_than_other_statements(
    db: Database, *, patient: bool
) -> None:
    """Both wait behind a lock for longer than the connection's timeout; one lives to see it go."""
    job_id = await enqueue(db)
    hasty = await db.party("hasty", statement_timeout="50ms", lock_timeout="0")
    blocker = await db.caller("blocker")
    op = db.store.leases.claim(lanes("q"), count=1, worker=A, patient=patient)
    async with blocker.transaction():
        await blocker.connection.execute("LOCK TABLE tenure.queue")
        waiting = asyncio.create_task(hasty.run(op))
        while not waiting.done() and not await waits_for_long(db, "hasty"):
            pass
    await asyncio.wait([waiting])
    if patient:
        assert [claimed.job.id for claimed in (await waiting).jobs] == [job_id]
    else:
        assert "statement timeout" in str(waiting.exception())


async def test_a_finished_job_is_not_claimed(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Succeeded())
    db.clock.advance(3600 * SECOND)

    assert await claim(db, count=9) == []
