"""Wakeups: a queue's name on the store's channel, when there may be something to claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.acts import a_job, roll_back

if TYPE_CHECKING:
    from support.store import Database, Party

MARK = "mark"


async def listener(db: Database) -> Party:
    party = await db.caller("listener")
    await party.connection.execute(f"LISTEN {db.store.jobs.channel}")
    return party


async def heard(db: Database, party: Party) -> list[str]:
    """What was sent up to now: everything before a mark that is sent now."""
    await db.fetch("SELECT pg_notify($1, $2)", db.store.jobs.channel, MARK)
    names: list[str] = []
    while MARK not in names:
        batch = party.connection.notifies(timeout=10, stop_after=1)
        found = [notice.payload async for notice in batch]
        assert found, "no wakeup within 10 s"
        names += found
    return names[: names.index(MARK)]


async def test_an_enqueue_wakes_each_of_its_queues_once(db: Database) -> None:
    ear = await listener(db)
    jobs = [a_job(queue="a"), a_job(queue="b"), a_job(queue="a"), a_job(queue="c")]
    await db.run(db.store.jobs.enqueue(jobs))

    assert sorted(await heard(db, ear)) == ["a", "b", "c"]


async def test_keyed_jobs_wake_their_queues_too(db: Database) -> None:
    ear = await listener(db)
    await db.run(db.store.jobs.enqueue([a_job(queue="a"), a_job(queue="b", key="k")]))

    assert sorted(await heard(db, ear)) == ["a", "b"]


async def test_an_enqueue_can_be_silent(db: Database) -> None:
    ear = await listener(db)
    await db.run(db.store.jobs.enqueue([a_job(), a_job(key="k")], wake=False))

    assert await heard(db, ear) == []


async def test_a_wakeup_in_a_callers_transaction_comes_at_its_commit(db: Database) -> None:
    ear = await listener(db)
    caller = await db.caller("caller")
    async with caller.transaction() as session:
        await session.run(db.store.jobs.enqueue([a_job()]))
        await session.run(db.store.jobs.enqueue([a_job(), a_job(key="k")]))
        assert await heard(db, ear) == []

    assert await heard(db, ear) == ["q"]


async def test_rollback_sends_no_wakeup(db: Database) -> None:
    ear = await listener(db)
    caller = await db.caller("caller")
    await roll_back(caller, db.store.jobs.enqueue([a_job()]))

    assert await heard(db, ear) == []
