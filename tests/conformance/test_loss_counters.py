"""Three counters, one for each kind of end (rule 8), as the store keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.job import State
from tenure._model.outcome import Loss, Lost, Released
from tenure._rules.lifecycle import ALONE_DEATHS, ALONE_FROM, MAX_DEATHS, MAX_WORKER_LOSSES
from tenure.errors import Error
from tests.conformance.acts import begin, claim_one, expire, get, lose, running, settle

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId

DIED = Error("ProcessDied", "its worker process died: SIGKILL")


async def counters(db: Database, job_id: JobId) -> tuple[int, int, int, int]:
    """Attempts charged, losses, worker losses, deaths."""
    job = await get(db, job_id)
    return job.attempt, job.losses, job.worker_losses, job.deaths


async def test_a_lost_worker_counts_one_worker_loss_and_no_attempt(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await lose(db, claimed)

    assert await counters(db, claimed.job.id) == (0, 0, 1, 1)
    assert (await get(db, claimed.job.id)).state is State.QUEUED


async def test_a_claim_lost_before_it_is_known_to_have_begun_counts_a_death_only(
    db: Database,
) -> None:
    claimed = await running(db, max_attempts=1)
    await expire(db, claimed)

    assert await counters(db, claimed.job.id) == (0, 0, 0, 1)
    again = await claim_one(db, worker=B)
    assert again.confirm


async def test_a_renewal_of_a_job_that_waits_does_not_make_it_begun(db: Database) -> None:
    claimed = await running(db)
    await db.run(db.store.leases.renew([claimed.lease], began=[False]))
    await expire(db, claimed)

    assert await counters(db, claimed.job.id) == (0, 0, 0, 1)


async def test_a_confirmed_job_that_is_lost_counts_a_worker_loss(db: Database) -> None:
    claimed = await running(db)
    assert await db.run(db.store.leases.confirm([claimed.lease])) == [True]
    await expire(db, claimed)

    assert await counters(db, claimed.job.id) == (0, 0, 1, 1)


async def test_the_second_lost_worker_in_a_row_makes_a_suspect(db: Database) -> None:
    claimed = await running(db)
    await lose(db, claimed)
    assert not (await get(db, claimed.job.id)).suspect
    await lose(db, await claim_one(db, worker=B))

    assert (await get(db, claimed.job.id)).suspect


async def test_a_shared_death_is_a_worker_loss_and_makes_a_suspect_at_once(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await settle(db, claimed, Lost(Loss.SHARED, DIED))

    assert await counters(db, claimed.job.id) == (0, 0, 1, 1)
    assert (await get(db, claimed.job.id)).suspect


async def test_deaths_of_its_own_process_are_losses_up_to_their_cap(db: Database) -> None:
    claimed = await running(db, max_attempts=1, max_losses=2)
    await settle(db, claimed, Lost(Loss.OWN, DIED))
    assert await counters(db, claimed.job.id) == (0, 1, 0, 1)
    answer = await settle(db, await claim_one(db), Lost(Loss.OWN, DIED))

    assert (answer.state, answer.reason) == (State.FAILED, "poison")


async def test_a_shared_death_does_not_bring_a_job_closer_to_its_cap_of_losses(
    db: Database,
) -> None:
    claimed = await running(db, max_losses=2)
    await settle(db, claimed, Lost(Loss.SHARED, DIED))
    answer = await settle(db, await claim_one(db), Lost(Loss.OWN, DIED))

    assert answer.state is State.QUEUED
    assert await counters(db, claimed.job.id) == (0, 1, 1, 2)


async def test_a_job_that_its_holder_gives_back_is_counted_nowhere(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await begin(db, claimed)
    await settle(db, claimed, Released(begun=True))

    assert await counters(db, claimed.job.id) == (0, 0, 0, 0)


async def test_the_last_worker_loss_that_a_job_may_have_ends_it(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await db.fetch(f"UPDATE tenure.job SET worker_losses = {MAX_WORKER_LOSSES - 1} RETURNING id")
    await lose(db, claimed)

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "poison")


async def test_progress_resets_both_loss_counters_and_neither_deaths_nor_suspicion(
    db: Database,
) -> None:
    claimed = await running(db)
    await settle(db, claimed, Lost(Loss.SHARED, DIED))
    await settle(db, await claim_one(db), Lost(Loss.OWN, DIED))
    again = await claim_one(db)
    await db.run(db.store.leases.progress(again.lease, cursor=1))

    assert await counters(db, claimed.job.id) == (1, 0, 0, 2)
    assert (await get(db, claimed.job.id)).suspect


async def test_a_report_that_moves_nothing_resets_nothing(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Lost(Loss.SHARED, DIED))
    again = await claim_one(db)
    await db.run(db.store.leases.progress(again.lease, message="still here"))

    assert await counters(db, claimed.job.id) == (1, 0, 1, 1)


async def test_the_last_death_that_a_job_may_have_ends_it(db: Database) -> None:
    claimed = await running(db)
    await db.fetch(f"UPDATE tenure.job SET deaths = {MAX_DEATHS - 1} RETURNING id")
    await expire(db, claimed)

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "poison")


async def test_a_job_with_many_deaths_runs_alone_although_its_cursor_moves(db: Database) -> None:
    claimed = await running(db)
    await db.fetch(f"UPDATE tenure.job SET deaths = {ALONE_DEATHS - 1} RETURNING id")
    await db.run(db.store.leases.progress(claimed.lease, cursor=1))
    await expire(db, claimed)

    job = await get(db, claimed.job.id)
    assert (job.worker_losses, job.deaths, job.suspect) == (1, ALONE_DEATHS, True)
    assert await db.run(db.store.leases.suspect_waits(["q"], ALONE_FROM))
    beside_others = db.store.leases.claim(lanes("q"), count=1, worker=A, suspects=ALONE_FROM)
    assert list((await db.run(beside_others)).jobs) == []
    alone = db.store.leases.claim(lanes("q"), count=1, worker=A, suspects=MAX_WORKER_LOSSES)
    assert [claimed.job.id for claimed in (await db.run(alone)).jobs] == [job.id]


async def test_a_job_with_fewer_deaths_whose_cursor_moves_is_not_a_suspect(db: Database) -> None:
    claimed = await running(db)
    await db.fetch(f"UPDATE tenure.job SET deaths = {ALONE_DEATHS - 2} RETURNING id")
    await db.run(db.store.leases.progress(claimed.lease, cursor=1))
    await expire(db, claimed)

    job = await get(db, claimed.job.id)
    assert (job.worker_losses, job.deaths, job.suspect) == (1, ALONE_DEATHS - 1, False)


async def test_a_sweep_leaves_what_its_own_process_has_yet_to_give_back(db: Database) -> None:
    claimed = await running(db)
    await begin(db, claimed)
    db.clock.advance(31 * SECOND)

    assert (await db.run(db.store.leases.rescue(kept=[claimed.lease]))).jobs == []
    await settle(db, claimed, Released(begun=True))
    assert await counters(db, claimed.job.id) == (0, 0, 0, 0)


@pytest.mark.parametrize("how", ["worker", "process", "given back"])
async def test_a_job_that_fails_on_loss_fails_of_every_end_that_is_not_its_own(
    db: Database, how: str
) -> None:
    claimed = await running(db, max_attempts=1)
    await db.run(db.store.leases.confirm([claimed.lease], fail_on_loss=[True]))
    if how == "worker":
        await expire(db, claimed)
    else:
        outcome = Lost(Loss.SHARED, DIED) if how == "process" else Released(begun=True)
        await settle(db, claimed, outcome)

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "lost")


async def test_a_job_that_fails_on_loss_and_is_given_back_unbegun_is_queued(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await settle(db, claimed, Released())
    again = await claim_one(db, worker=B)
    await expire(db, again)

    assert (await get(db, claimed.job.id)).state is State.QUEUED
