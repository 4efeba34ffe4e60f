"""A handler's fence: the check that locks nothing, and the guard that holds until its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.race_helpers import ended, held, waiting
from support.store import SECOND
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._store.steps import atomically
from tenure.errors import LeaseLost

if TYPE_CHECKING:
    from support.store import Database


async def test_the_first_check_of_a_transaction_neither_waits_nor_locks(db: Database) -> None:
    """Were it to lock, renewals and sweeps would wait for whatever user code does. Shows R20."""
    [lease] = await held(db)
    handler, renewer, worker = [await db.party(n) for n in ("handler", "renewer", "worker")]

    async with worker.transaction() as other:
        await other.run(db.store.leases.renew([lease]))
        async with handler.transaction() as tx:
            await tx.run(db.store.settlement.check(lease))

    async with handler.transaction() as tx:
        await tx.run(db.store.settlement.check(lease))
        assert await renewer.run(db.store.leases.renew([lease])) == [
            RenewResult(RenewStatus.RENEWED)
        ]
        assert await worker.run(db.store.settlement.settle([ended(lease)])) == [
            SettleResult(SettleStatus.SETTLED, State.COMPLETED)
        ]


async def test_a_rescue_skips_the_job_whose_guard_is_open(db: Database) -> None:
    """Between the guard and the commit no other worker may become the holder. Shows R20."""
    [lease] = await held(db)
    handler, rescuer = await db.caller("handler"), await db.party("rescuer")
    db.clock.advance(31 * SECOND)

    async with handler.transaction() as tx:
        await tx.run(db.store.leases.guard(lease))
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert len((await rescuer.run(db.store.leases.rescue())).jobs) == 1


async def test_renewals_and_reports_continue_during_an_open_guard(db: Database) -> None:
    """A fence that stopped the holder's own renewals would cost it the lease. Shows R3, R20."""
    [lease] = await held(db)
    handler, renewer, rescuer = [await db.party(n) for n in ("handler", "renewer", "rescuer")]

    async with handler.transaction() as tx:
        await tx.run(db.store.leases.guard(lease))
        db.clock.advance(20 * SECOND)
        assert await renewer.run(db.store.leases.renew([lease])) == [
            RenewResult(RenewStatus.RENEWED)
        ]
        assert not (await renewer.run(db.store.leases.progress(lease, cursor=1))).reached
        # The fence holds on the renewed row too.
        db.clock.advance(31 * SECOND)
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert len((await rescuer.run(db.store.leases.rescue())).jobs) == 1


async def test_a_guard_that_waits_behind_a_rescue_raises(db: Database) -> None:
    """The handler's own commit must fail with its lease. Shows R20."""
    [lease] = await held(db)
    rescuer, handler = await db.party("rescuer"), await db.caller("handler")
    db.clock.advance(31 * SECOND)

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        guard = await waiting(db, handler, atomically(db.store.leases.guard(lease)))

    with pytest.raises(LeaseLost):
        await guard


async def test_a_settle_waits_for_the_guards_commit(db: Database) -> None:
    """Settled and rescheduled under the fence, the job could have two holders. Shows R20."""
    [lease] = await held(db)
    handler, worker = await db.caller("handler"), await db.party("worker")

    async with handler.transaction() as tx:
        await tx.run(db.store.leases.guard(lease))
        settle = await waiting(db, worker, db.store.settlement.settle([ended(lease)]))

    assert await settle == [SettleResult(SettleStatus.SETTLED, State.COMPLETED)]
