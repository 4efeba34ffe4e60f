"""Settles against themselves, and reports that wait too long: one result, and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import (
    BROKEN,
    BY,
    attempts,
    claim,
    ended,
    held,
    leases,
    state,
    undone,
    waiting,
)
from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import NewJob, State
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import Succeeded
from tenure.errors import LeaseLost

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.lease import Lease

WAITS_AT_COMMIT = """
CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER slow_commit AFTER DELETE ON tenure.job
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit()
"""


async def test_a_settle_that_waits_behind_its_twin_is_answered_as_repeated(db: Database) -> None:
    """A worker that heard no answer asks again; the job has one result all the same. Shows R5."""
    [lease] = await held(db)
    first, twin = await db.party("first"), await db.party("twin")

    async with first.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease, Succeeded("one"))]))
        again = await waiting(
            db, twin, db.store.settlement.settle([ended(lease, Succeeded("two"))])
        )

    assert await again == [SettleResult(SettleStatus.REPEATED)]
    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert job.result == "one"
    [attempt] = await attempts(db, lease.job_id)
    assert attempt.settle_repeats == 1


async def test_a_settle_whose_twin_rolls_back_settles(db: Database) -> None:
    """A repeat must never be confirmed by a first that did not happen. Shows R18."""
    [lease] = await held(db)
    first, twin = await db.party("first"), await db.party("twin")

    async with undone(first) as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        again = await waiting(db, twin, db.store.settlement.settle([ended(lease)]))

    assert await again == [SettleResult(SettleStatus.SETTLED, State.COMPLETED)]


async def test_a_settle_repeated_while_the_first_is_committing_is_answered_as_repeated(
    db: Database,
) -> None:
    """The first has done its work but is not durable; the twin must wait for that. Shows R18."""
    [lease] = await held(db)
    await db.fetch(WAITS_AT_COMMIT)
    gate, first, twin = await db.caller("gate"), await db.party("first"), await db.party("twin")

    async with gate.connection.transaction():
        await gate.connection.execute("SELECT pg_advisory_xact_lock(1)")
        committing = await waiting(db, first, db.store.settlement.settle([ended(lease)]))
        again = await waiting(db, twin, db.store.settlement.settle([ended(lease)]))
        assert await attempts(db, lease.job_id) == []

    assert await committing == [SettleResult(SettleStatus.SETTLED, State.COMPLETED)]
    assert await again == [SettleResult(SettleStatus.REPEATED)]


async def test_a_repeated_failure_does_not_touch_the_next_running_period(db: Database) -> None:
    """The job is back in the queue and claimed again: the old lease names nothing. Shows R5."""
    [lease] = await held(db)
    first, twin, claimer = [await db.party(name) for name in ("first", "twin", "claimer")]

    async with first.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease, BROKEN)]))
        again = await waiting(db, twin, db.store.settlement.settle([ended(lease, BROKEN)]))

    assert await again == [SettleResult(SettleStatus.REPEATED)]
    db.clock.advance(60 * SECOND)
    [next_one] = leases(await claimer.run(claim(db.store, worker=B)))
    assert await twin.run(db.store.settlement.settle([ended(lease, BROKEN)])) == [
        SettleResult(SettleStatus.REPEATED)
    ]
    assert await state(db, next_one.job_id) is State.RUNNING
    [attempt] = await attempts(db, lease.job_id)
    assert (attempt.outcome, attempt.settle_repeats) == (AttemptOutcome.FAILED, 2)


async def test_two_settles_of_the_same_jobs_in_opposite_order_do_not_deadlock(
    db: Database,
) -> None:
    """Batches lock in id order, so that one waits for the other and never both. Shows R5."""
    first, middle, last = await held(db, 3)
    gate, one, other = await db.party("gate"), await db.party("one"), await db.party("other")

    async with gate.transaction() as tx:
        await tx.run(db.store.leases.guard(middle))
        forth = await waiting(
            db, one, db.store.settlement.settle([ended(x) for x in (first, middle, last)])
        )
        back = await waiting(
            db, other, db.store.settlement.settle([ended(x) for x in (last, middle, first)])
        )

    assert [settled.answer for settled in await forth] == [SettleStatus.SETTLED] * 3
    assert [settled.answer for settled in await back] == [SettleStatus.REPEATED] * 3


async def short_lease(db: Database) -> Lease:
    """A lease of one second on the database's own clock."""
    await db.run(db.real.jobs.enqueue([NewJob("work")]))
    [lease] = leases(await db.run(claim(db.real, ttl=SECOND)))
    return lease


async def until_over(db: Database, lease: Lease) -> None:
    """Return once the server's own clock is past the end that others see of this lease."""
    async with asyncio.timeout(10):
        while True:
            [row] = await db.fetch(
                "SELECT lease_expires_at < clock_timestamp() AS over FROM tenure.job WHERE id = $1",
                lease.job_id,
            )
            if row["over"]:
                return
            await asyncio.sleep(0.005)


async def test_progress_that_waits_past_its_leases_end_is_refused(db: Database) -> None:
    """Judged before the wait only, it would revive a lease that others may take. Shows R21."""
    operator, worker = await db.party("operator"), await db.party("worker")
    lease = await short_lease(db)

    async with operator.transaction() as tx:
        await tx.run(db.real.job_commands.cancel([lease.job_id], BY))
        report = await waiting(db, worker, db.real.leases.progress(lease, cursor=7))
        await until_over(db, lease)

    with pytest.raises(LeaseLost):
        await report


async def test_progress_that_waits_past_its_leases_end_is_refused_after_a_rollback_too(
    db: Database,
) -> None:
    """What held the row left it as it was; the time went by all the same. Shows R21."""
    handler, worker = await db.party("handler"), await db.party("worker")
    lease = await short_lease(db)

    async with undone(handler) as tx:
        await tx.run(db.real.settlement.settle_within(lease, ended(lease).settlement))
        # Else the server ends this idle transaction in the same moment as the lease.
        await handler.connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        report = await waiting(db, worker, db.real.leases.progress(lease, cursor=7, items={"a": 1}))
        await until_over(db, lease)

    with pytest.raises(LeaseLost):
        await report
    assert await db.run(db.real.jobs.items(lease.job_id)) == {}
