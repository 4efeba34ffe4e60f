"""Limit W at its edge: never one job more, whatever is in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.race_helpers import BY, claim, ended, enqueued, held, leases, undone, waiting
from support.store import SECOND, B
from tenure._model.outcome import Released

if TYPE_CHECKING:
    from support.store import Database, Party


async def limited(db: Database, limit: int, queue: str = "default") -> None:
    await db.run(db.store.queues.limit(queue, limit, BY))


async def room(db: Database, claimer: Party) -> int:
    """How many jobs a claim that asks for ten gets."""
    return len((await claimer.run(claim(db.store, worker=B, count=10))).jobs)


async def test_of_two_claims_with_room_for_one_the_second_waits_and_gets_nothing(
    db: Database,
) -> None:
    """Counted in one snapshot, both would find room. Shows R9."""
    await enqueued(db, 2)
    await limited(db, 1)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        assert len((await tx.run(claim(db.store))).jobs) == 1
        second = await waiting(db, other, claim(db.store, worker=B))

    assert (await second).jobs == []


async def test_a_claim_that_waited_for_one_that_rolls_back_gets_its_room(db: Database) -> None:
    """Unused room must not be lost either. Shows R9."""
    await enqueued(db, 2)
    await limited(db, 1)
    one, other = await db.party("one"), await db.party("other")

    async with undone(one) as tx:
        await tx.run(claim(db.store))
        second = await waiting(db, other, claim(db.store, worker=B))

    assert len((await second).jobs) == 1


async def test_a_renewal_in_flight_at_expiry_is_counted(db: Database) -> None:
    """The lease looks over, but the renewal that revives it was first. Shows R9."""
    await limited(db, 1)
    [lease] = await held(db)
    await enqueued(db)
    renewer, claimer = await db.party("renewer"), await db.party("claimer")

    db.clock.advance(29 * SECOND)
    async with renewer.transaction() as tx:
        await tx.run(db.store.leases.renew([lease]))
        db.clock.advance(2 * SECOND)
        assert await room(db, claimer) == 0

    assert await room(db, claimer) == 0
    db.clock.advance(30 * SECOND)
    assert await room(db, claimer) == 1


async def test_a_settle_in_flight_is_counted_until_its_commit(db: Database) -> None:
    """It may still roll back, and then its job runs on. Shows R9."""
    await limited(db, 1)
    [lease] = await held(db)
    await enqueued(db)
    worker, claimer = await db.party("worker"), await db.party("claimer")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        assert await room(db, claimer) == 0

    assert await room(db, claimer) == 1


async def test_an_expired_lease_with_a_settle_in_flight_is_counted(db: Database) -> None:
    """The claim's own rescue skips it as locked, so it must not be taken for gone. Shows R9."""
    await limited(db, 1)
    [lease] = await held(db)
    await enqueued(db)
    worker, claimer = await db.party("worker"), await db.party("claimer")

    db.clock.advance(31 * SECOND)
    async with undone(worker) as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        assert await room(db, claimer) == 0

    # It was not revived this time: expired leases do not count, and it is rescued on the way.
    assert await room(db, claimer) == 1


async def test_a_release_in_flight_is_counted_until_its_commit(db: Database) -> None:
    """The handler has ended, but the store does not know it yet. Shows R9, R31."""
    await limited(db, 1)
    [lease] = await held(db)
    worker, claimer = await db.party("worker"), await db.party("claimer")

    async with worker.transaction() as tx:
        await tx.run(db.store.settlement.settle([ended(lease, Released())]))
        assert await room(db, claimer) == 0

    assert await room(db, claimer) == 1


async def test_a_claim_in_flight_when_the_limit_was_set_is_counted(db: Database) -> None:
    """It knew of no limit, so it could not say that it counts: it is adopted. Shows R9, R38."""
    await enqueued(db, 3)
    early, operator, claimer = [await db.party(n) for n in ("early", "operator", "claimer")]

    async with early.transaction() as tx:
        [lease] = leases(await tx.run(claim(db.store)))
        await operator.run(db.store.queues.limit("default", 1, BY))

    assert await room(db, claimer) == 0
    await early.run(db.store.settlement.settle([ended(lease)]))
    assert await room(db, claimer) == 1


async def test_a_claim_that_commits_after_another_was_adopted_is_counted_too(
    db: Database,
) -> None:
    """Adopting once is not enough: claims in flight appear one by one. Shows R9, R38."""
    await enqueued(db, 3)
    one, other, claimer = [await db.party(n) for n in ("one", "other", "claimer")]

    async with one.transaction() as slow:
        await slow.run(claim(db.store))
        [lease] = leases(await other.run(claim(db.store)))
        await db.run(db.store.queues.limit("default", 1, BY))
        assert await room(db, claimer) == 0

    await other.run(db.store.settlement.settle([ended(lease)]))
    assert await room(db, claimer) == 0


async def test_the_limit_of_the_installation_holds_between_claims_from_two_queues(
    db: Database,
) -> None:
    """The claims touch no common job or queue, only the row that speaks for all. Shows R9."""
    await enqueued(db, queue="a")
    await enqueued(db, queue="b")
    await limited(db, 1, "*")
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        assert len((await tx.run(claim(db.store, "a"))).jobs) == 1
        second = await waiting(db, other, claim(db.store, "b", worker=B))

    assert (await second).jobs == []


async def test_claims_from_the_same_queues_in_opposite_order_do_not_deadlock(
    db: Database,
) -> None:
    """Queues take turns in a claim's lanes, but their rows are locked by name. Shows R9."""
    for queue in ("a", "m", "z"):
        await enqueued(db, queue=queue)
        await limited(db, 1, queue)
    gate, one, other = await db.party("gate"), await db.party("one"), await db.party("other")

    async with gate.transaction() as tx:
        await tx.run(db.store.queues.limit("m", 2, BY))
        forth = await waiting(db, one, claim(db.store, "a", "m", "z", count=10))
        back = await waiting(db, other, claim(db.store, "z", "m", "a", count=10, worker=B))

    assert len((await forth).jobs) + len((await back).jobs) == 3


async def test_a_limit_that_is_lowered_waits_for_the_claim_under_the_old_one(
    db: Database,
) -> None:
    """Once the operator has the answer, no claim by the old limit can follow. Shows R9, R38."""
    await enqueued(db, 3)
    await limited(db, 2)
    claimer, operator = await db.party("claimer"), await db.party("operator")

    async with claimer.transaction() as tx:
        assert len((await tx.run(claim(db.store, count=2))).jobs) == 2
        lowering = await waiting(db, operator, db.store.queues.limit("default", 1, BY))

    assert (await lowering).max_running == 1
    assert await room(db, claimer) == 0
