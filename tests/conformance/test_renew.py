"""Renew: a lease that is still held is extended; one that is not is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, B
from tenure._model.ids import Token
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus
from tenure._model.outcome import Released, Succeeded
from tests.conformance.acts import (
    BY,
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
    from support.store import Database
    from tenure._model.lease import Lease

LOST = RenewResult(RenewStatus.LOST)
RENEWED = RenewResult(RenewStatus.RENEWED)


async def renew(db: Database, lease: Lease) -> RenewResult:
    [answer] = await db.run(db.store.leases.renew([lease]))
    return answer


async def test_a_renewal_extends_the_lease_by_its_own_length_from_now(db: Database) -> None:
    """Shows R3."""
    claimed = await running(db, lease=20 * SECOND)
    db.clock.advance(7 * SECOND)

    assert await renew(db, claimed.lease) == RENEWED
    assert (await get(db, claimed.job.id)).lease_expires_at == db.clock.now + 20 * SECOND


async def test_lease_lasts_while_it_is_renewed_in_time(
    db: Database,
) -> None:
    """Shows R8."""
    claimed = await running(db)
    for _ in range(20):
        db.clock.advance(29 * SECOND)
        assert (await db.run(db.store.leases.rescue())).jobs == []
        assert await renew(db, claimed.lease) == RENEWED
    await settle(db, claimed, Succeeded())

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.renewals, attempt.late) == (20, False)


@pytest.mark.parametrize("microseconds", [-1, 0, 1])
async def test_a_lease_that_is_over_cannot_be_renewed(db: Database, microseconds: int) -> None:
    """Shows R4."""
    claimed = await running(db)
    db.clock.advance(30 * SECOND + timedelta(microseconds=microseconds))
    before = await get(db, claimed.job.id)

    assert await renew(db, claimed.lease) == (RENEWED if microseconds < 0 else LOST)
    assert (await get(db, claimed.job.id) == before) is (microseconds >= 0)


async def test_a_renewal_is_guarded_by_job_owner_and_token(db: Database) -> None:
    """Shows R3."""
    claimed = await running(db)
    other = await running(db)
    before = await get(db, claimed.job.id)
    db.clock.advance(SECOND)

    for stranger in (
        claimed.lease._replace(claimed_by=B),
        claimed.lease._replace(token=Token(claimed.lease.token + 1)),
        claimed.lease._replace(token=Token(claimed.lease.token - 1)),
        claimed.lease._replace(job_id=other.job.id, token=Token(other.lease.token + 1)),
    ):
        assert await renew(db, stranger) == LOST
    assert await get(db, claimed.job.id) == before


@pytest.mark.parametrize("end", ["completed", "released", "rescued", "claimed again", "revoked"])
async def test_a_lease_that_was_taken_or_ended_is_lost(db: Database, end: str) -> None:
    """Shows R4."""
    claimed = await running(db)
    match end:
        case "completed":
            await settle(db, claimed, Succeeded())
        case "released":
            await settle(db, claimed, Released())
        case "revoked":
            await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
        case _:
            await lose(db, claimed)
    if end == "claimed again":
        again = await claim_one(db)
        assert await renew(db, again.lease) == RENEWED
    before = await get(db, claimed.job.id)

    assert await renew(db, claimed.lease) == LOST
    assert await get(db, claimed.job.id) == before


async def test_answers_keep_the_order_of_requests(db: Database) -> None:
    await db.run(db.store.jobs.enqueue([a_job() for _ in range(6)]))
    claimed = await claim(db, count=6)
    await settle(db, claimed[1], Succeeded())
    await db.run(db.store.job_commands.cancel([claimed[4].job.id], BY))
    leases = [claimed[i].lease for i in (5, 1, 4, 0, 1)]

    assert await db.run(db.store.leases.renew(leases)) == [
        RENEWED,
        LOST,
        RenewResult(RenewStatus.RENEWED, cancel_requested=True),
        RENEWED,
        LOST,
    ]
    assert await db.run(db.store.leases.renew([])) == []


async def test_old_and_new_lease_of_one_job_differ(db: Database) -> None:
    old = await running(db)
    await settle(db, old, Released())
    new = await claim_one(db, worker=B)

    assert await db.run(db.store.leases.renew([old.lease, new.lease])) == [LOST, RENEWED]


async def test_a_row_that_is_locked_is_answered_as_busy_without_waiting(db: Database) -> None:
    """Shows R3."""
    claimed, free = await running(db), await running(db)
    other = await db.caller("other")
    async with other.transaction():
        await other.connection.execute(
            "SELECT FROM tenure.job WHERE id = %s FOR UPDATE", [claimed.job.id]
        )
        answers = await db.run(db.store.leases.renew([claimed.lease, free.lease]))
    assert answers == [RenewResult(RenewStatus.BUSY), RENEWED]

    assert await renew(db, claimed.lease) == RENEWED


async def test_a_queued_job_has_no_lease_to_renew(db: Database) -> None:
    """Shows R3."""
    claimed = await running(db)
    await settle(db, claimed, Released())
    await enqueue(db)

    assert await renew(db, claimed.lease) == LOST
    assert (await get(db, claimed.job.id)).state is State.QUEUED
