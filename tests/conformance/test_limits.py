"""Limits: how many jobs run at once, of a queue or of all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.outcome import Failed, Released, Snoozed, Succeeded
from tenure.errors import InvalidValue
from tests.conformance.acts import (
    BY,
    ERROR,
    a_job,
    claim,
    claim_one,
    count,
    enqueue,
    settle,
    unread,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome


async def fill(db: Database, *queues: str, each: int = 10) -> None:
    await db.run(
        db.store.jobs.enqueue([a_job(queue=queue) for queue in queues for _ in range(each)])
    )


@pytest.mark.parametrize("name", ["q", "*"])
async def test_no_more_run_at_once_than_the_limit_allows(db: Database, name: str) -> None:
    """Shows R9."""
    await fill(db, "q")
    await db.run(db.store.queues.limit(name, 3, BY))

    assert len(await claim(db, count=2)) == 2
    assert len(await claim(db, count=2, worker=B)) == 1
    claims = await db.run(db.store.leases.claim(lanes("q"), count=2, worker=A))
    assert (claims.jobs, claims.limited) == ([], True)
    assert unread(claims, "q")


async def test_many_claims_at_once_keep_to_the_limit(db: Database) -> None:
    """Shows R9."""
    await fill(db, "q", each=40)
    await db.run(db.store.queues.limit("q", 5, BY))
    parties = [await db.party(f"worker {n}") for n in range(6)]
    ops = [party.run(db.store.leases.claim(lanes("q"), count=3, worker=A)) for party in parties]
    answers = await asyncio.gather(*ops)

    assert sum(len(claims.jobs) for claims in answers) == 5
    assert await count(db, "job", "state = 'running'") == 5


@pytest.mark.parametrize("hinted", [False, True])
async def test_the_hint_changes_nothing_but_the_way(db: Database, *, hinted: bool) -> None:
    await fill(db, "q", "free", each=4)
    await db.run(db.store.queues.limit("q", 2, BY))
    op = db.store.leases.claim(lanes("q", "free"), count=9, worker=A, limited=hinted)
    claims = await db.run(op)

    queues = [claimed.job.queue for claimed in claims.jobs]
    assert sorted(queues) == ["free"] * 4 + ["q"] * 2
    assert claims.limited
    assert unread(claims, "q")
    assert not unread(claims, "free")


async def test_a_hint_that_is_out_of_date_does_no_harm(db: Database) -> None:
    await fill(db, "q", each=2)
    claims = await db.run(db.store.leases.claim(lanes("q"), count=9, worker=A, limited=True))

    assert (len(claims.jobs), claims.limited) == (2, False)


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(), Failed(ERROR), Snoozed(SECOND), Released()],
    ids=["completed", "failed", "snoozed", "released"],
)
async def test_every_end_makes_room(db: Database, outcome: Outcome) -> None:
    """Shows R9."""
    await fill(db, "q", each=2)
    await db.run(db.store.queues.limit("q", 1, BY))
    claimed = await claim_one(db)
    assert await claim(db) == []
    await settle(db, claimed, outcome)

    assert len(await claim(db)) == 1
    assert await claim(db) == []


async def test_expired_leases_do_not_count(db: Database) -> None:
    """Shows R9."""
    await fill(db, "q", each=4)
    await db.run(db.store.queues.limit("q", 2, BY))
    dead = await claim(db, count=2)
    db.clock.advance(30 * SECOND)
    first = await claim(db, count=2, worker=B)
    second = await claim(db, count=2, worker=B)

    assert [c.job.id for c in [*first, *second]] == [c.job.id for c in dead]
    assert await claim(db, count=2) == []


async def test_what_ran_before_the_limit_counts_too(db: Database) -> None:
    """Shows R9."""
    await fill(db, "q")
    running = await claim(db, count=3)
    await db.run(db.store.queues.limit("q", 4, BY))

    assert len(await claim(db, count=9)) == 1
    await settle(db, running[0], Succeeded())
    assert len(await claim(db, count=9)) == 1
    assert await count(db, "job", "state = 'running'") == 4


@pytest.mark.parametrize("name", ["q", "*"])
async def test_a_limit_set_below_what_runs_stops_claims_until_it_is_met(
    db: Database, name: str
) -> None:
    """Shows R9."""
    await fill(db, "q")
    running = await claim(db, count=4)
    await db.run(db.store.queues.limit(name, 2, BY))
    for claimed in running[:2]:
        assert await claim(db, count=9) == []
        await settle(db, claimed, Succeeded())
    assert await claim(db, count=9) == []
    await settle(db, running[2], Succeeded())

    assert len(await claim(db, count=9)) == 1


async def test_a_limit_can_be_raised_lowered_and_taken_away(db: Database) -> None:
    """Shows R38."""
    await fill(db, "q")
    for limit, running in ((1, 1), (3, 3), (2, 3), (5, 5), (None, 10)):
        row = await db.run(db.store.queues.limit("q", limit, BY))
        assert row.max_running == limit
        await claim(db, count=99)
        assert await count(db, "job", "state = 'running'") == running


async def test_a_limit_of_zero_stops_a_queue(db: Database) -> None:
    await fill(db, "q")
    await db.run(db.store.queues.limit("q", 0, BY))

    assert await claim(db, count=9) == []


async def test_the_limits_of_a_queue_and_of_all_hold_together(db: Database) -> None:
    """Shows R9."""
    await fill(db, "a", "b")
    await db.run(db.store.queues.limit("a", 2, BY))
    await db.run(db.store.queues.limit("*", 5, BY))
    claimed = await claim(db, count=99, queues=["a", "b"])

    assert sorted(c.job.queue for c in claimed) == ["a"] * 2 + ["b"] * 3
    assert await claim(db, count=99, queues=["a", "b"]) == []
    await settle(db, next(c for c in claimed if c.job.queue == "a"), Succeeded())
    assert [c.job.queue for c in await claim(db, count=99, queues=["b"])] == ["b"]


async def test_another_queues_limit_is_not_ones_own(db: Database) -> None:
    await fill(db, "a", "b", each=3)
    await db.run(db.store.queues.limit("a", 1, BY))
    claims = await db.run(db.store.leases.claim(lanes("b"), count=9, worker=A))

    assert (len(claims.jobs), claims.limited, claims.skipped_queues) == (3, False, frozenset())


async def test_the_order_is_kept_within_a_limit(db: Database) -> None:
    """Shows R10."""
    low = await enqueue(db, priority=1)
    high = await enqueue(db, priority=9)
    middle = await enqueue(db)
    await db.run(db.store.queues.limit("q", 2, BY))

    assert [c.job.id for c in await claim(db, count=9)] == [high, middle]
    await db.run(db.store.queues.limit("q", 3, BY))
    assert [c.job.id for c in await claim(db, count=9)] == [low]


async def test_a_negative_limit_is_refused(db: Database) -> None:
    with pytest.raises(InvalidValue, match="0 stops a queue, None removes the limit"):
        await db.run(db.store.queues.limit("q", -1, BY))
    assert await db.run(db.store.queues.list()) == []
