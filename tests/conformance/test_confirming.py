"""A job that was lost before is confirmed before it begins; until then only a death is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import RenewStatus
from tenure._model.outcome import Released
from tests.conformance.acts import (
    BY,
    a_job,
    claim,
    claim_one,
    count,
    enqueue,
    expire,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.lease import ClaimedJob


async def confirm(db: Database, claimed: ClaimedJob, *, fail_on_loss: bool = False) -> bool:
    [confirmed] = await db.run(
        db.store.leases.confirm([claimed.lease], fail_on_loss=[fail_on_loss])
    )
    return confirmed


@pytest.mark.parametrize("limit", [None, 1])
async def test_a_fresh_job_begins_without_a_confirmation_and_one_that_was_lost_with_it(
    db: Database, limit: int | None
) -> None:
    """Shows R6. Fresh jobs pay no statement."""
    if limit:
        await db.run(db.store.queues.limit("q", limit, BY))
    claimed = await running(db)
    assert not claimed.confirm
    await expire(db, claimed)

    assert (await claim_one(db)).confirm


async def test_a_job_that_fails_on_loss_is_confirmed_from_its_first_claim_on(db: Database) -> None:
    assert (await running(db, max_losses=0)).confirm


async def test_a_job_that_was_only_given_back_needs_no_confirmation(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Released(begun=True))

    assert not (await claim_one(db)).confirm


@pytest.mark.parametrize("limit", [None, 1])
async def test_unanswered_claim_counts_a_death_and_no_loss(db: Database, limit: int | None) -> None:
    """Shows R6. Shows R15."""
    job_id = await enqueue(db, max_attempts=2)
    await lose(db, await claim_one(db))
    if limit:
        await db.run(db.store.queues.limit("q", limit, BY))
    for _ in range(5):
        await expire(db, await claim_one(db))

    job = await get(db, job_id)
    assert (job.state, job.attempt, job.suspect) == (State.QUEUED, 0, False)
    assert (job.losses, job.worker_losses, job.deaths) == (0, 1, 6)
    assert (await claim_one(db, worker=B)).job.attempt == 1


async def test_unanswered_claim_is_recorded_as_lost(db: Database) -> None:
    """Shows R6."""
    claimed = await running(db)
    await expire(db, claimed)

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.outcome, attempt.renewals) == (AttemptOutcome.LOST, 0)
    assert attempt.error_type == "LeaseExpired"
    assert "the handler is not known to have begun" in str(attempt.error_message)
    assert "not known to have begun" in str(attempt.error_signature)


async def test_what_was_renewed_before_it_began_is_not_known_to_have_begun(db: Database) -> None:
    """Prefetched jobs are renewed too."""
    await db.run(db.store.jobs.enqueue([a_job(), a_job()]))
    first, second = await claim(db, count=2)
    leases = [first.lease, second.lease]
    answers = await db.run(db.store.leases.renew(leases, began=[False, True]))
    assert [one.answer for one in answers] == [RenewStatus.RENEWED] * 2
    db.clock.advance(30 * SECOND)
    await db.run(db.store.leases.rescue())

    jobs = [await get(db, one.job.id) for one in (first, second)]
    assert [(job.worker_losses, job.deaths) for job in jobs] == [(0, 1), (1, 1)]


async def test_a_renewal_that_knows_of_no_beginning_does_not_forget_one(db: Database) -> None:
    claimed = await running(db)
    for began in (True, False):
        await db.run(db.store.leases.renew([claimed.lease], began=[began]))
    await expire(db, claimed)

    assert (await get(db, claimed.job.id)).worker_losses == 1


async def test_a_report_of_progress_says_that_the_handler_began(db: Database) -> None:
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, done=1))
    await expire(db, claimed)

    assert (await get(db, claimed.job.id)).worker_losses == 1


async def test_a_lease_that_is_over_is_not_confirmed(db: Database) -> None:
    """Shows R7. Nothing may begin, whether it was rescued yet or not."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl)
    assert not await confirm(db, claimed)
    assert await count(db, "job", "renewals = -1") == 1
    await db.run(db.store.leases.rescue())
    assert not await confirm(db, claimed)

    assert (await get(db, claimed.job.id)).worker_losses == 0


async def test_a_lease_that_another_has_now_is_not_confirmed(db: Database) -> None:
    claimed = await running(db)
    await expire(db, claimed)
    other = await claim_one(db, worker=B)

    assert not await confirm(db, claimed)
    assert await confirm(db, other)


async def test_many_are_confirmed_at_once_and_answered_in_order(db: Database) -> None:
    await db.run(db.store.jobs.enqueue([a_job() for _ in range(3)]))
    leases = [one.lease for one in await claim(db, count=3)]
    await db.run(db.store.job_commands.revoke([leases[1].job_id], BY))
    answers = await db.run(db.store.leases.confirm(leases[::-1], fail_on_loss=[True, False, False]))

    assert answers == [True, False, True]
    [row] = await db.fetch("SELECT id FROM tenure.job WHERE max_losses = 0")
    assert row["id"] == leases[2].job_id


async def test_from_its_confirmation_on_a_loss_counts(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(db)
    await lose(db, await claim_one(db))
    claimed = await claim_one(db, worker=B)
    assert await confirm(db, claimed)
    await expire(db, claimed)

    assert (await get(db, job_id)).worker_losses == 2


async def test_a_confirmation_extends_the_lease_by_its_own_length(db: Database) -> None:
    """It is the first renewal: the claim's own time may have gone by in a wait."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl - SECOND)
    assert await confirm(db, claimed)
    [row] = await db.fetch("SELECT lease_expires_at, renewed_at FROM tenure.job")

    assert row["renewed_at"] == db.clock.now
    assert row["lease_expires_at"] == db.clock.now + claimed.lease.ttl


async def test_a_revoked_claim_that_was_not_confirmed_has_no_renewals(db: Database) -> None:
    """Shows R36."""
    claimed = await running(db)
    await db.run(db.store.job_commands.revoke([claimed.job.id], BY))

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.renewals == 0


async def test_a_lease_that_was_not_confirmed_is_listed_without_renewals(db: Database) -> None:
    claimed = await running(db)
    [lease] = await db.run(db.store.inspection.leases())
    assert (lease.job_id, lease.renewals) == (claimed.job.id, 0)


async def test_a_claim_hands_out_no_suspect_that_took_too_many_workers_down(db: Database) -> None:
    """Shows R7. Who holds something else asks for none of them."""
    job_id = await enqueue(db)
    for losses in (1, 2, 3):
        [claimed] = await claim(db)
        assert await confirm(db, claimed)
        await expire(db, claimed)
        assert (await get(db, job_id)).suspect == (losses >= 2)

    for suspects, ids in ((0, []), (3, []), (4, [job_id])):
        claims = await db.run(
            db.store.leases.claim(lanes("q"), count=9, worker=A, suspects=suspects)
        )
        assert [one.job.id for one in claims.jobs] == ids
