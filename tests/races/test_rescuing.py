"""Rescues against everything that a holder does: the token decides who was first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.race_helpers import attempts, claim, ended, held, job, leases, state, undone, waiting
from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._model.outcome import Loss, Lost, Released, Succeeded
from tenure.errors import Error, LeaseLost

if TYPE_CHECKING:
    from support.store import Database

DIED = Lost(Loss.OWN, Error("ProcessDied", "its process was ended by SIGKILL"))


async def test_a_settle_that_waits_behind_a_rescue_is_refused(db: Database) -> None:
    """A former holder's result changes nothing, and is kept as evidence. Shows R5."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    rescuer, worker = await db.party("rescuer"), await db.party("worker")

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        late = await waiting(
            db, worker, db.store.settlement.settle([ended(lease, Succeeded("mine"))])
        )

    assert await late == [SettleResult(SettleStatus.REFUSED)]
    assert await state(db, lease.job_id) is State.QUEUED
    [lost] = await attempts(db, lease.job_id)
    assert lost.outcome is AttemptOutcome.LOST
    assert "mine" in str(lost.refused_result)


async def test_a_settle_that_waits_behind_a_rescue_that_rolls_back_is_accepted_as_late(
    db: Database,
) -> None:
    """No other worker has taken the job, so refusing would only run the work again. Shows R5."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    rescuer, worker = await db.party("rescuer"), await db.party("worker")

    async with undone(rescuer) as tx:
        await tx.run(db.store.leases.rescue())
        late = await waiting(db, worker, db.store.settlement.settle([ended(lease)]))

    assert await late == [SettleResult(SettleStatus.SETTLED, State.COMPLETED, late=True)]


async def test_a_rescue_skips_the_job_that_is_being_settled(db: Database) -> None:
    """A late result that came first stands; the sweep neither waits nor spoils it. Shows R5."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    worker, rescuer = await db.party("worker"), await db.party("rescuer")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert (await rescuer.run(db.store.leases.rescue())).found == 0
    assert await state(db, lease.job_id) is State.COMPLETED


async def test_a_release_that_waits_behind_a_rescue_gives_nothing_back(db: Database) -> None:
    """A loss stays counted, whatever its holder still says. Shows R13."""
    [lease] = await held(db)
    await db.run(db.store.leases.renew([lease]))
    db.clock.advance(31 * SECOND)
    rescuer, worker = await db.party("rescuer"), await db.party("worker")

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        release = await waiting(db, worker, db.store.settlement.settle([ended(lease, Released())]))

    assert await release == [SettleResult(SettleStatus.REFUSED)]
    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert (job.attempt, job.worker_losses, job.deaths) == (0, 1, 1)


async def test_a_rescue_skips_the_job_that_is_being_released(db: Database) -> None:
    """A job given back in time counts no loss, even if its lease ended meanwhile. Shows R31."""
    [lease] = await held(db)
    worker, rescuer = await db.party("worker"), await db.party("rescuer")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease, Released())]))
        db.clock.advance(31 * SECOND)
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert (job.losses, job.worker_losses, job.deaths) == (0, 0, 0)


async def test_a_renewal_beside_a_rescue_is_busy_and_then_lost(db: Database) -> None:
    """A renewal never waits; only the commit of the rescue stops the work. Shows R4."""
    [lease] = await held(db)
    rescuer, renewer = await db.party("rescuer"), await db.party("renewer")

    async with rescuer.transaction() as tx:
        now = db.clock.advance(31 * SECOND)
        await tx.run(db.store.leases.rescue())
        db.clock.now = now - 2 * SECOND  # the renewal was sent in time
        assert await renewer.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.BUSY)]

    assert await renewer.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.LOST)]


async def test_a_renewal_of_many_renews_what_is_not_locked(db: Database) -> None:
    """One locked job must not cost its neighbours their leases. Shows R3."""
    first, second = await held(db, 2)
    operator, renewer = await db.party("operator"), await db.party("renewer")

    async with operator.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(first)]))
        answers = await renewer.run(db.store.leases.renew([first, second]))

    assert answers == [RenewResult(RenewStatus.BUSY), RenewResult(RenewStatus.RENEWED)]


async def test_a_rescue_skips_the_lease_that_is_being_renewed(db: Database) -> None:
    """A renewal sent in time wins, though the lease looks over to others. Shows R3."""
    [lease] = await held(db)
    db.clock.advance(29 * SECOND)
    renewer, rescuer = await db.party("renewer"), await db.party("rescuer")

    async with renewer.transaction() as tx:
        assert await tx.run(db.store.leases.renew([lease])) == [RenewResult(RenewStatus.RENEWED)]
        db.clock.advance(2 * SECOND)
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert (await rescuer.run(db.store.leases.rescue())).found == 0
    assert await state(db, lease.job_id) is State.RUNNING


async def test_progress_that_waits_behind_a_rescue_is_refused(db: Database) -> None:
    """A former holder's cursor must not become the next one's start. Shows R21, R22."""
    [lease] = await held(db)
    rescuer, worker = await db.party("rescuer"), await db.party("worker")

    async with rescuer.transaction() as tx:
        now = db.clock.advance(31 * SECOND)
        await tx.run(db.store.leases.rescue())
        db.clock.now = now - 2 * SECOND  # the report was made in time
        report = await waiting(
            db, worker, db.store.leases.progress(lease, cursor=7, items={"a": 1})
        )

    with pytest.raises(LeaseLost):
        await report
    [again] = (await db.run(claim(db.store, worker=B))).jobs
    assert (again.job.cursor, again.job.items) == (None, 0)


async def test_two_rescuers_share_the_work_and_never_a_job(db: Database) -> None:
    """Anyone may rescue, any number at once, and a loss is counted once. Shows R6."""
    held_now = await held(db, 4)
    await db.run(db.store.leases.renew(held_now))
    all_of_them = {lease.job_id for lease in held_now}
    db.clock.advance(31 * SECOND)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        first = {rescued.job_id for rescued in (await tx.run(db.store.leases.rescue(count=2))).jobs}
        second = {rescued.job_id for rescued in (await other.run(db.store.leases.rescue())).jobs}

    assert len(first) == len(second) == 2
    assert first | second == all_of_them
    again = (await db.run(claim(db.store, worker=B, count=4))).jobs
    assert {one.job.id for one in again} == all_of_them
    assert {(one.job.worker_losses, one.job.deaths) for one in again} == {(1, 1)}


async def test_a_lease_that_was_locked_when_a_floor_passed_it_is_rescued_from_zero(
    db: Database,
) -> None:
    """A sweep that trusted its floor for ever would leave this job stuck. Shows R7."""
    [lease] = await held(db)
    db.clock.advance(31 * SECOND)
    worker, rescuer = await db.party("worker"), await db.party("rescuer")

    async with undone(worker) as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        passed = await rescuer.run(db.store.leases.rescue())
        assert passed.found == 0

    assert (await rescuer.run(db.store.leases.rescue(floor=passed.now))).found == 0
    [rescued] = (await rescuer.run(db.store.leases.rescue(floor=None))).jobs
    assert (rescued.job_id, rescued.state) == (lease.job_id, State.QUEUED)


_HELD_UP = """
CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END$$;
CREATE TRIGGER held_up BEFORE UPDATE ON tenure.job FOR EACH ROW EXECUTE FUNCTION held_up()
"""


async def test_a_lease_that_ends_while_its_renewal_is_under_way_is_not_revived(
    db: Database,
) -> None:
    """The statement found both in time, and is held up at the first of them. Shows R5."""
    await db.run(db.real.jobs.enqueue([job(), job()]))
    [long] = leases(await db.run(claim(db.real)))
    [short] = leases(await db.run(claim(db.real, ttl=SECOND)))
    await db.fetch(_HELD_UP)
    blocker, worker = await db.party("blocker"), await db.party("worker")

    async with blocker.connection.transaction():
        await blocker.connection.execute("SELECT pg_advisory_xact_lock(7)")
        renewal = await waiting(db, worker, db.real.leases.renew([long, short]))
        await db.fetch(
            "SELECT pg_sleep_until(lease_expires_at) FROM tenure.job WHERE id = $1", short.job_id
        )

    assert await renewal == [RenewResult(RenewStatus.RENEWED), RenewResult(RenewStatus.LOST)]


async def test_a_confirmation_that_waited_past_its_lease_is_refused(db: Database) -> None:
    """It waits behind a transaction that only locks the row. Shows R5."""
    await db.run(db.real.jobs.enqueue([job()]))
    [lease] = leases(await db.run(claim(db.real, ttl=SECOND)))
    blocker, worker = await db.party("blocker"), await db.party("worker")

    async with blocker.connection.transaction():
        await blocker.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        late = await waiting(db, worker, db.real.leases.confirm([lease]))
        await db.fetch("SELECT pg_sleep_until(lease_expires_at) FROM tenure.job")

    assert await late == [False]


async def test_a_confirmation_that_waits_behind_a_rescue_is_refused(db: Database) -> None:
    """Else a handler would begin whose job is in the queue again. Shows R1, R5."""
    [lease] = await held(db)
    rescuer, worker = await db.party("rescuer"), await db.party("worker")

    async with rescuer.transaction() as tx:
        now = db.clock.advance(31 * SECOND)
        await tx.run(db.store.leases.rescue())
        db.clock.now = now - 2 * SECOND  # the confirmation was sent in time
        late = await waiting(db, worker, db.store.leases.confirm([lease]))

    assert await late == [False]


async def test_a_rescue_skips_the_job_that_is_being_confirmed(db: Database) -> None:
    """A confirmation sent in time wins, though the lease looks over to others. Shows R3."""
    [lease] = await held(db)
    db.clock.advance(29 * SECOND)
    worker, rescuer = await db.party("worker"), await db.party("rescuer")

    async with worker.transaction() as tx:
        assert await tx.run(db.store.leases.confirm([lease])) == [True]
        db.clock.advance(2 * SECOND)
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    assert (await rescuer.run(db.store.leases.rescue())).found == 0


async def test_the_death_that_a_parent_settles_and_a_rescue_count_one_loss(db: Database) -> None:
    """The second one finds another token. Shows R5."""
    [lease] = await held(db)
    await db.run(db.store.leases.renew([lease]))
    db.clock.advance(31 * SECOND)
    rescuer, parent = await db.party("rescuer"), await db.party("parent")

    async with rescuer.transaction() as tx:
        await tx.run(db.store.leases.rescue())
        death = await waiting(db, parent, db.store.settlement.settle([ended(lease, DIED)]))

    assert [answer.state for answer in await death] == [None]
    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert (job.losses, job.worker_losses, job.deaths) == (0, 1, 1)
