"""The order of claims: priority, due time, age; what was given back, suspects, queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, lanes
from tenure._model.outcome import Failed, Released, Snoozed
from tests.conformance.acts import (
    BY,
    DIED,
    ERROR,
    a_job,
    claim,
    claim_one,
    enqueue,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId


async def order(db: Database, *queues: str) -> list[JobId]:
    """The ids in the order in which one claim takes them."""
    return [claimed.job.id for claimed in await claim(db, count=99, queues=queues or ("q",))]


async def one_by_one(db: Database) -> list[JobId]:
    """The ids in the order in which claims of one each take them."""
    taken: list[JobId] = []
    while claimed := await claim(db):
        taken += [one.job.id for one in claimed]
    return taken


@pytest.mark.parametrize("in_turn", [order, one_by_one])
async def test_priority_comes_first_then_the_due_time_then_age(
    db: Database, in_turn: object
) -> None:
    """Shows R10."""
    assert callable(in_turn)
    request = [(5, 3), (0, 0), (5, 1), (9, 4), (5, 1), (4, 0), (9, 2)]
    ids = [
        await enqueue(db, priority=priority, delay=delay * SECOND) for priority, delay in request
    ]
    db.clock.advance(5 * SECOND)

    assert await in_turn(db) == [ids[i] for i in (6, 3, 2, 4, 0, 5, 1)]


async def test_what_was_given_back_comes_before_fresh_work_of_its_priority(db: Database) -> None:
    """Shows R10."""
    given_back = await running(db)
    db.clock.advance(SECOND)
    fresh = await enqueue(db)
    urgent = await enqueue(db, priority=6)
    await settle(db, given_back, Released())

    assert await order(db) == [urgent, given_back.job.id, fresh]


async def test_what_was_given_back_keeps_its_age(db: Database) -> None:
    old = await running(db)
    db.clock.advance(SECOND)
    young = await running(db)
    await settle(db, young, Released())
    await settle(db, old, Released())

    assert await order(db) == [old.job.id, young.job.id]


async def test_what_was_snoozed_or_failed_takes_its_new_place(db: Database) -> None:
    snoozed = await running(db)
    failed = await running(db)
    await settle(db, failed, Failed(ERROR, after=2 * SECOND))
    await settle(db, snoozed, Snoozed(3 * SECOND))
    fresh = await enqueue(db, delay=SECOND)
    db.clock.advance(3 * SECOND)

    assert await order(db) == [fresh, failed.job.id, snoozed.job.id]


async def test_a_claim_serves_only_the_queues_it_asks_for(db: Database) -> None:
    await enqueue(db, queue="other", priority=9)
    mine = await enqueue(db, queue="mine")

    assert await order(db, "mine") == [mine]
    assert await order(db, "nothing") == []


async def test_queues_are_served_in_the_order_of_the_lanes(db: Database) -> None:
    jobs = [a_job(queue=queue, priority=p) for p in (5, 6) for queue in ("a", "b")]
    a5, b5, a6, b6 = [answer.id for answer in await db.run(db.store.jobs.enqueue(jobs))]

    assert await order(db, "b", "a") == [b6, a6, b5, a5]


async def test_a_suspect_is_claimed_alone(db: Database) -> None:
    """Shows R7."""
    suspect = await running(db)
    fresh = [await enqueue(db), await enqueue(db)]
    await settle(db, suspect, DIED)
    claims = await db.run(db.store.leases.claim(lanes("q"), count=9, worker=A))

    assert [claimed.job.id for claimed in claims.jobs] == [suspect.job.id]
    assert claims.jobs[0].job.suspect
    assert claims.found == 3
    assert await order(db) == fresh


async def test_a_suspect_does_not_come_with_what_is_more_urgent(db: Database) -> None:
    suspect = await running(db)
    await settle(db, suspect, DIED)
    urgent = [await enqueue(db, priority=9), await enqueue(db, priority=9)]

    assert await order(db) == urgent
    assert await order(db) == [suspect.job.id]


async def test_two_suspects_are_claimed_one_at_a_time(db: Database) -> None:
    ids = [answer.id for answer in await db.run(db.store.jobs.enqueue([a_job(), a_job()]))]
    for claimed in await claim(db, count=2):
        await settle(db, claimed, DIED)

    assert await order(db) == ids[:1]
    assert await order(db) == ids[1:]


async def test_what_was_lost_once_with_its_worker_comes_with_others(db: Database) -> None:
    """The first loss of a whole worker is nearly always a machine's."""
    ids = [answer.id for answer in await db.run(db.store.jobs.enqueue([a_job(), a_job()]))]
    claimed = await claim(db, count=2)
    await db.run(db.store.leases.renew([one.lease for one in claimed]))
    db.clock.advance(30 * SECOND)
    await db.run(db.store.leases.rescue())

    again = await claim(db, count=2)
    assert [one.job.id for one in again] == ids
    assert [one.job.worker_losses for one in again] == [1, 1]


async def test_next_due_is_the_earliest_time_ahead(db: Database) -> None:
    await enqueue(db)
    await enqueue(db, delay=9 * SECOND)
    await enqueue(db, delay=7 * SECOND, priority=0)
    await enqueue(db, delay=5 * SECOND, held=True)
    await enqueue(db, delay=3 * SECOND, queue="other")

    due, now = await db.run(db.store.leases.next_due(lanes("q")))
    assert (due, now) == (db.clock.now + 7 * SECOND, db.clock.now)
    assert (await db.run(db.store.leases.next_due(lanes("empty"))))[0] is None


async def test_next_due_knows_what_was_given_back(db: Database) -> None:
    job_id = await enqueue(db, delay=9 * SECOND, held=True)
    await db.run(db.store.job_commands.resume([job_id], BY))

    due, _ = await db.run(db.store.leases.next_due(lanes("q")))
    assert due == db.clock.now + 9 * SECOND


async def test_queue_names_are_those_with_something_queued(db: Database) -> None:
    for queue in ("b", "a", "c", "b"):
        await enqueue(db, queue=queue)
    await enqueue(db, queue="held", held=True)
    await claim(db, queues=["c"])
    given_back = await running(db, queue="d")
    await settle(db, given_back, Released())

    assert await db.run(db.store.leases.queue_names()) == ["a", "b", "d"]


async def test_a_job_that_is_due_again_is_claimed_by_anyone(db: Database) -> None:
    """Shows R14."""
    claimed = await running(db)
    await settle(db, claimed, Failed(ERROR, after=5 * SECOND))
    assert await claim(db) == []

    db.clock.advance(5 * SECOND)
    assert (await claim_one(db)).job.id == claimed.job.id
