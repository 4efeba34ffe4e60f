"""Claims against claims, rescues, pauses and holds: one job, one holder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.race_helpers import BY, LEASE, claim, enqueued, held, leases, state, undone, waiting
from support.store import SECOND, A, B
from tenure._model.job import State
from tenure._rules.claiming import LaneTracker
from tenure._store.postgres.sessions import arun
from tenure._store.steps import Query

if TYPE_CHECKING:
    from support.store import Database
    from tenure._store.steps import Rows, Step


async def test_a_claim_skips_the_job_that_another_is_claiming(db: Database) -> None:
    """Two claimers must neither take one job twice nor wait for each other. Shows R1."""
    first, second = await enqueued(db, 2)
    slow, quick = await db.party("slow"), await db.party("quick")

    async with slow.transaction() as tx:
        [taken] = leases(await tx.run(claim(db.store, worker=A)))
        others = leases(await quick.run(claim(db.store, worker=B, count=10)))

    assert taken.job_id == first
    assert [lease.job_id for lease in others] == [second]
    assert (await quick.run(claim(db.store, worker=B))).found == 0


async def test_a_claim_that_rolls_back_leaves_the_job_to_the_next(db: Database) -> None:
    """A claimer that dies before its commit has taken nothing. Shows R18."""
    [job_id] = await enqueued(db)
    dying, next_one = await db.party("dying"), await db.party("next")

    async with undone(dying) as tx:
        assert leases(await tx.run(claim(db.store, worker=A)))
        assert (await next_one.run(claim(db.store, worker=B))).found == 0

    [claimed] = (await next_one.run(claim(db.store, worker=B))).jobs
    assert (claimed.job.id, claimed.job.attempt) == (job_id, 1)


async def test_a_claim_that_rolls_back_below_a_floor_is_found_by_a_scan_from_zero(
    db: Database,
) -> None:
    """A floor is a hint: what it passed by must be late, never lost. Shows R11."""
    first, second = await enqueued(db, 2)
    dying, other = await db.party("dying"), await db.party("other")
    book = LaneTracker(["default"])

    async def claim_by_the_book() -> list[int]:
        request = book.next_lanes(woken=True)
        claims = await other.run(db.store.leases.claim(request, count=10, worker=B, ttl=LEASE))
        book.record_claim(request, claims, wanted=10)
        return [lease.job_id for lease in leases(claims)]

    async with undone(dying) as tx:
        assert [lease.job_id for lease in leases(await tx.run(claim(db.store)))] == [first]
        assert await claim_by_the_book() == [second]
        db.clock.advance(20 * SECOND)
        assert await claim_by_the_book() == []  # and the floor is past the first job now

    assert await claim_by_the_book() == []
    scan = await other.run(
        db.store.leases.claim(book.next_scan_lanes(), count=10, worker=B, patient=True)
    )
    assert [lease.job_id for lease in leases(scan)] == [first]


async def test_a_claim_finds_what_a_rescue_gives_back_only_once_it_is_committed(
    db: Database,
) -> None:
    """Between the old holder and the new one there is no moment with two. Shows R6."""
    [lost] = await held(db)
    db.clock.advance(31 * SECOND)
    rescuer, claimer = await db.party("rescuer"), await db.party("claimer")

    async with rescuer.transaction() as tx:
        assert len((await tx.run(db.store.leases.rescue())).jobs) == 1
        assert (await claimer.run(claim(db.store, worker=B))).found == 0

    job = await db.run(db.store.jobs.get(lost.job_id))
    assert job is not None
    assert job.token > lost.token
    [found] = (await claimer.run(claim(db.store, worker=B))).jobs
    assert found.returned
    assert found.lease.job_id == lost.job_id
    assert found.lease.token > lost.token


async def test_a_rescue_skips_the_job_that_is_being_claimed(db: Database) -> None:
    """A lease that is not committed yet is nobody's to end, however old it looks. Shows R6."""
    [job_id] = await enqueued(db)
    claimer, rescuer = await db.party("claimer"), await db.party("rescuer")

    async with claimer.transaction() as tx:
        await tx.run(claim(db.store))
        db.clock.advance(31 * SECOND)
        assert (await rescuer.run(db.store.leases.rescue())).found == 0

    [rescued] = (await rescuer.run(db.store.leases.rescue())).jobs
    assert (rescued.job_id, rescued.state) == (job_id, State.QUEUED)


async def test_claim_does_not_wait_for_a_pause_and_respects_it_after_commit(
    db: Database,
) -> None:
    """A pause is read inside the claim: no job starts after it. Shows R36."""
    await enqueued(db, 3)
    operator, claimer = await db.party("operator"), await db.party("claimer")

    async with operator.transaction() as tx:
        await tx.run(db.store.queues.pause("default", BY))
        assert len((await claimer.run(claim(db.store))).jobs) == 1

    after = await claimer.run(claim(db.store))
    assert after.jobs == []
    assert after.skipped_queues == {"default"}


async def test_a_pause_that_ends_during_a_claim_is_not_taken_for_an_empty_queue(
    db: Database,
) -> None:
    """A floor that moved on would leave the whole backlog below it. Shows R11, R36."""
    [job_id] = await enqueued(db)
    await db.run(db.store.queues.pause("default", BY))
    db.clock.advance(10 * SECOND)
    claimer, operator = await db.party("claimer"), await db.party("operator")
    book = LaneTracker(["default"])

    async def perform(step: Step) -> Rows:
        """Resume the queue between the claim and its next statement."""
        rows = await claimer._perform(step)
        if isinstance(step, Query) and step.name == "claim":
            await operator.run(db.store.queues.resume("default", BY))
        return rows

    request = book.next_lanes()
    claims = await arun(db.store.leases.claim(request, count=10, worker=B), perform)
    assert claims.jobs == []
    book.record_claim(request, claims, wanted=10)

    again = await claimer.run(
        db.store.leases.claim(book.next_lanes(woken=True), count=10, worker=B)
    )
    assert [lease.job_id for lease in leases(again)] == [job_id]


async def test_a_claim_from_a_limited_queue_that_waits_behind_a_pause_takes_nothing(
    db: Database,
) -> None:
    """The claim had its turn only after the pause, so it must obey it. Shows R36."""
    await enqueued(db, 3)
    await db.run(db.store.queues.limit("default", 2, BY))
    operator, claimer = await db.party("operator"), await db.party("claimer")

    async with operator.transaction() as tx:
        await tx.run(db.store.queues.pause("default", BY))
        claiming = await waiting(db, claimer, claim(db.store))

    assert (await claiming).jobs == []


async def test_hold_behind_a_claim_answers_too_late(
    db: Database,
) -> None:
    """An operator must not be told that a job is held while it runs. Shows R36."""
    [job_id] = await enqueued(db)
    claimer, operator = await db.party("claimer"), await db.party("operator")

    async with claimer.transaction() as tx:
        await tx.run(claim(db.store))
        holding = await waiting(db, operator, db.store.job_commands.hold([job_id], BY))

    assert await holding == [False]
    assert await state(db, job_id) is State.RUNNING


async def test_a_claim_skips_the_job_that_is_being_held(db: Database) -> None:
    """A hold that was answered with yes keeps the job from every claim. Shows R36."""
    [job_id] = await enqueued(db)
    operator, claimer = await db.party("operator"), await db.party("claimer")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.hold([job_id], BY)) == [True]
        assert (await claimer.run(claim(db.store))).found == 0

    assert (await claimer.run(claim(db.store))).found == 0
