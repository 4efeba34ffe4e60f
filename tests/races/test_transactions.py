"""Completion and fence inside a caller's transaction: all of it happens, or nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import (
    BY,
    attempts,
    claim,
    ended,
    enqueued,
    held,
    job,
    leases,
    state,
    undone,
    waiting,
)
from support.store import SECOND, A, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure.errors import LeaseLost

if TYPE_CHECKING:
    from support.store import Database, Party
    from tenure._model.lease import Lease


async def effects(db: Database) -> int:
    """How many effects of handlers are committed."""
    return len(await db.fetch("SELECT job_id FROM effect"))


async def complete_with_effect(db: Database, handler: Party, lease: Lease) -> None:
    """What a handler does in its job's transaction: an effect, a follow-up job, the end."""
    async with handler.transaction() as tx:
        await handler.connection.execute("INSERT INTO effect VALUES (%s)", [lease.job_id])
        await tx.run(db.store.jobs.enqueue([job(queue="next")]))
        await tx.run(db.store.settlement.settle_within(lease, ended(lease).settlement))


async def completing(db: Database, handler: Party, lease: Lease) -> asyncio.Task[None]:
    """Start that, and return once it is seen waiting."""
    task = asyncio.create_task(complete_with_effect(db, handler, lease))
    await db.until_blocked(handler.name)
    return task


@pytest.fixture
async def lease(db: Database) -> Lease:
    """A lease of worker A, and a table for the effects of its handler."""
    await db.fetch("CREATE TABLE effect (job_id bigint)")
    [lease] = await held(db)
    return lease


async def test_a_renewal_beside_an_open_completion_is_busy_and_not_lost(
    db: Database, lease: Lease
) -> None:
    """Told that it is lost, the worker would stop the very work that is committing. Shows R4."""
    handler, renewer = await db.caller("handler"), await db.party("renewer")

    async with undone(handler) as tx:
        await tx.run(db.store.settlement.settle_within(lease, ended(lease).settlement))
        assert await renewer.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.BUSY)]

    assert await renewer.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.RENEWED)]


async def test_a_rescue_skips_the_job_whose_completion_is_open(db: Database, lease: Lease) -> None:
    """The completion was first: it stands, with its effect, once. Shows R20."""
    handler, rescuer = await db.caller("handler"), await db.party("rescuer")
    db.clock.advance(31 * SECOND)

    async with handler.transaction() as tx:
        await handler.connection.execute("INSERT INTO effect VALUES (%s)", [lease.job_id])
        await tx.run(db.store.settlement.settle_within(lease, ended(lease).settlement))
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert (await rescuer.run(db.store.leases.rescue())).found == 0
    assert await state(db, lease.job_id) is State.COMPLETED
    assert await effects(db) == 1


async def test_a_completion_that_waits_behind_a_rescue_rolls_everything_back(
    db: Database, lease: Lease
) -> None:
    """The job will run again, so this effect and its follow-up must not stay. Shows R20."""
    rescuer, handler = await db.party("rescuer"), await db.caller("handler")
    db.clock.advance(31 * SECOND)

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        completion = await completing(db, handler, lease)

    with pytest.raises(LeaseLost, match="roll back"):
        await completion
    assert await effects(db) == 0
    assert (await db.run(claim(db.store, "next"))).found == 0
    [again] = leases(await db.run(claim(db.store, worker=B)))
    await complete_with_effect(db, handler, again)
    assert await effects(db) == 1


async def test_a_completion_that_waits_behind_a_rescue_that_rolls_back_stands(
    db: Database, lease: Lease
) -> None:
    """No other worker took the job in the end: the work was done, and is kept. Shows R20."""
    rescuer, handler = await db.party("rescuer"), await db.caller("handler")
    db.clock.advance(31 * SECOND)

    async with undone(rescuer) as tx:
        await tx.run(db.store.leases.rescue())
        completion = await completing(db, handler, lease)

    await completion
    assert await effects(db) == 1
    assert await state(db, lease.job_id) is State.COMPLETED


async def test_a_completion_that_waits_behind_a_revoke_rolls_everything_back(
    db: Database, lease: Lease
) -> None:
    """The operator took the job away: nothing of it may appear after that. Shows R20, R36."""
    operator, handler = await db.party("operator"), await db.caller("handler")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.revoke([lease.job_id], BY)) == [True]
        completion = await completing(db, handler, lease)

    with pytest.raises(LeaseLost):
        await completion
    assert await effects(db) == 0
    assert await state(db, lease.job_id) is State.CANCELLED


async def test_a_revoke_that_waits_behind_an_open_completion_comes_too_late(
    db: Database, lease: Lease
) -> None:
    """Answered with yes, the operator would believe that nothing had happened. Shows R20."""
    handler, operator = await db.caller("handler"), await db.party("operator")

    async with handler.transaction() as tx:
        await handler.connection.execute("INSERT INTO effect VALUES (%s)", [lease.job_id])
        await tx.run(db.store.settlement.settle_within(lease, ended(lease).settlement))
        revoke = await waiting(db, operator, db.store.job_commands.revoke([lease.job_id], BY))

    assert await revoke == [False]
    assert await effects(db) == 1
    assert await state(db, lease.job_id) is State.COMPLETED
    assert await db.run(db.store.audit.list(f"job:{lease.job_id}")) == []


async def test_a_settle_that_waits_behind_a_revoke_is_refused(db: Database, lease: Lease) -> None:
    """The holder's next write after a revoke changes nothing. Shows R5, R36."""
    operator, worker = await db.party("operator"), await db.party("worker")

    async with operator.transaction() as tx:
        await tx.run(db.store.job_commands.revoke([lease.job_id], BY))
        settle = await waiting(db, worker, db.store.settlement.settle([ended(lease)]))

    assert await settle == [SettleResult(SettleStatus.REFUSED)]
    [attempt] = await attempts(db, lease.job_id)
    assert attempt.outcome is AttemptOutcome.REVOKED
    assert attempt.refused_result is not None


async def test_an_enqueue_in_an_open_transaction_is_found_only_after_its_commit(
    db: Database,
) -> None:
    """A job and the data it works on appear together, or not at all. Shows R18, R20."""
    await enqueued(db)
    await db.run(claim(db.store, worker=A))
    caller, claimer = await db.caller("caller"), await db.party("claimer")

    async with caller.transaction() as tx:
        [fresh] = await tx.run(db.store.jobs.enqueue([job()]))
        assert (await claimer.run(claim(db.store, worker=B))).found == 0

    assert [x.job_id for x in leases(await claimer.run(claim(db.store, worker=B)))] == [fresh.id]
