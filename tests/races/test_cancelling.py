"""Cancels against everything that may end a job first: asked once, it never runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.race_helpers import (
    BROKEN,
    BY,
    attempts,
    claim,
    ended,
    enqueued,
    held,
    state,
    undone,
    waiting,
)
from support.store import SECOND, B
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._model.outcome import Released, Snoozed, Succeeded
from tenure._model.results import CancelStatus

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome

ENDINGS = pytest.mark.parametrize(
    "outcome",
    [BROKEN, Snoozed(60 * SECOND), Released()],
    ids=["fail", "snooze", "release"],
)


@ENDINGS
async def test_an_ending_that_waits_behind_a_cancel_ends_as_cancelled(
    db: Database, outcome: Outcome
) -> None:
    """A cancelled job must not slip back into the queue by the last word. Shows R36."""
    [lease] = await held(db)
    operator, worker = await db.party("operator"), await db.party("worker")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.cancel([lease.job_id], BY)) == [
            CancelStatus.REQUESTED
        ]
        settle = await waiting(db, worker, db.store.settlement.settle([ended(lease, outcome)]))

    assert await settle == [SettleResult(SettleStatus.SETTLED, State.CANCELLED)]
    assert await state(db, lease.job_id) is State.CANCELLED


@ENDINGS
async def test_a_cancel_that_waits_behind_a_return_to_the_queue_ends_the_job(
    db: Database, outcome: Outcome
) -> None:
    """No worker runs it any more, so it ends at once. Shows R36."""
    [lease] = await held(db)
    worker, operator = await db.party("worker"), await db.party("operator")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease, outcome)]))
        cancel = await waiting(db, operator, db.store.job_commands.cancel([lease.job_id], BY))

    assert await cancel == [CancelStatus.CANCELLED]
    assert await state(db, lease.job_id) is State.CANCELLED
    assert len(await attempts(db, lease.job_id)) == 1


async def test_a_completion_that_waits_behind_a_cancel_is_accepted(db: Database) -> None:
    """The work is done; throwing its result away would help no user. Shows R5, R36."""
    [lease] = await held(db)
    operator, worker = await db.party("operator"), await db.party("worker")

    async with operator.transaction() as tx:
        await tx.run(db.store.job_commands.cancel([lease.job_id], BY))
        settle = await waiting(
            db, worker, db.store.settlement.settle([ended(lease, Succeeded(42))])
        )

    assert await settle == [SettleResult(SettleStatus.SETTLED, State.COMPLETED)]
    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert (job.state, job.result) == (State.COMPLETED, 42)


async def test_a_cancel_that_waits_behind_a_completion_finds_nothing_live(db: Database) -> None:
    """The answer must not promise a cancel that cannot be, nor the audit tell of one. Shows R36."""
    [lease] = await held(db)
    worker, operator = await db.party("worker"), await db.party("operator")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        cancel = await waiting(db, operator, db.store.job_commands.cancel([lease.job_id], BY))

    assert await cancel == [CancelStatus.NOT_LIVE]
    assert await db.run(db.store.audit.list(f"job:{lease.job_id}")) == []


async def test_a_rescue_skips_the_job_that_is_being_cancelled_and_then_ends_it(
    db: Database,
) -> None:
    """The holder is gone and cannot be asked; the sweep does it for him. Shows R6, R36."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    operator, rescuer = await db.party("operator"), await db.party("rescuer")

    async with operator.transaction() as tx:
        await tx.run(db.store.job_commands.cancel([lease.job_id], BY))
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    [rescued] = (await rescuer.run(db.store.leases.rescue())).jobs
    assert (rescued.job_id, rescued.state) == (lease.job_id, State.CANCELLED)
    assert await state(db, lease.job_id) is State.CANCELLED


async def test_a_cancel_that_waits_behind_a_rescue_ends_the_job(db: Database) -> None:
    """The job went back to the queue first; it must not be claimed from there. Shows R36."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    rescuer, operator = await db.party("rescuer"), await db.party("operator")

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        cancel = await waiting(db, operator, db.store.job_commands.cancel([lease.job_id], BY))

    assert await cancel == [CancelStatus.CANCELLED]
    assert (await db.run(claim(db.store, worker=B))).found == 0


async def test_revoke_behind_a_rescue_finds_no_holder(
    db: Database,
) -> None:
    """The job is queued, with a token of its own: it is no longer the one meant. Shows R36."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    rescuer, operator = await db.party("rescuer"), await db.party("operator")

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        revoke = await waiting(db, operator, db.store.job_commands.revoke([lease.job_id], BY))

    assert await revoke == [False]
    assert await state(db, lease.job_id) is State.QUEUED


async def test_a_cancel_that_waits_behind_a_claim_asks_the_new_holder(db: Database) -> None:
    """Judged by what it saw before the wait, it would delete a running job. Shows R36."""
    [job_id] = await enqueued(db)
    claimer, operator = await db.party("claimer"), await db.party("operator")

    async with claimer.transaction() as tx:
        [claimed] = (await tx.run(claim(db.store))).jobs
        cancel = await waiting(db, operator, db.store.job_commands.cancel([job_id], BY))

    assert await cancel == [CancelStatus.REQUESTED]
    assert await claimer.run(db.store.leases.renew([claimed.lease])) == [
        RenewResult(RenewStatus.RENEWED, cancel_requested=True)
    ]


async def test_a_claim_skips_the_job_that_is_being_cancelled(db: Database) -> None:
    """A cancel of a queued job that was answered means that it never starts. Shows R36."""
    [job_id] = await enqueued(db)
    operator, claimer = await db.party("operator"), await db.party("claimer")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.cancel([job_id], BY)) == [CancelStatus.CANCELLED]
        assert (await claimer.run(claim(db.store))).found == 0

    assert (await claimer.run(claim(db.store))).found == 0


async def test_a_renewal_beside_a_cancel_is_busy_and_then_carries_it(db: Database) -> None:
    """The request reaches the holder by its next renewal, and stops nothing. Shows R3, R36."""
    [lease] = await held(db)
    operator, renewer = await db.party("operator"), await db.party("renewer")

    async with operator.transaction() as tx:
        await tx.run(db.store.job_commands.cancel([lease.job_id], BY))
        assert await renewer.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.BUSY)]

    assert await renewer.run(db.store.leases.renew([lease])) == [
        RenewResult(RenewStatus.RENEWED, cancel_requested=True)
    ]


async def test_settle_behind_a_rolled_back_cancel_ends_as_requested(
    db: Database,
) -> None:
    """A request that was taken back never was: the job is to run again. Shows R14, R36."""
    [lease] = await held(db)
    operator, worker = await db.party("operator"), await db.party("worker")

    async with undone(operator) as tx:
        await tx.run(db.store.job_commands.cancel([lease.job_id], BY))
        settle = await waiting(db, worker, db.store.settlement.settle([ended(lease, BROKEN)]))

    assert await settle == [SettleResult(SettleStatus.SETTLED, State.QUEUED)]


async def test_cancels_of_the_same_jobs_in_opposite_order_do_not_deadlock(db: Database) -> None:
    """Two operators who select the same page must both get an answer. Shows R36."""
    first, middle, last = await enqueued(db, 3)
    gate, one, other = await db.party("gate"), await db.party("one"), await db.party("other")

    async with gate.transaction() as tx:
        await tx.run(db.store.job_commands.hold([middle], BY))
        forth = await waiting(db, one, db.store.job_commands.cancel([first, middle, last], BY))
        back = await waiting(db, other, db.store.job_commands.cancel([last, middle, first], BY))

    assert await forth == [CancelStatus.CANCELLED] * 3
    assert await back == [CancelStatus.NOT_LIVE] * 3
