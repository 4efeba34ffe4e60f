"""How much there is in each queue: exact up to a bound, zeros for what is known and empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A
from tenure._model.stats import COUNTED, Count, Depth
from tenure._model.worker import NewWorker
from tests.conformance.acts import BY, DAY, dead_letter, enqueue, running

if TYPE_CHECKING:
    from datetime import timedelta

    from support.store import Database


async def depths(db: Database, *, most: int = COUNTED) -> dict[str, Depth]:
    return {depth.queue: depth for depth in await db.run(db.store.stats.depths(most=most))}


def depth(queue: str, age: timedelta | None = None, /, **counts: int) -> Depth:
    """A depth with these counts, and zeros for the rest."""
    names = ("due", "scheduled", "running", "held", "failed")
    return Depth(queue, **{name: Count(counts.get(name, 0)) for name in names}, oldest_due_age=age)


async def test_every_kind_is_counted_for_itself(db: Database) -> None:
    """What an autoscaler reads, a part of R39."""
    await running(db)
    await dead_letter(db)
    for priority in (0, 5, 9):
        await enqueue(db, priority=priority)
    await enqueue(db, delay=DAY)
    await enqueue(db, held=True)
    returned = await enqueue(db, held=True)
    await db.run(db.store.job_commands.resume([returned], BY))
    db.clock.advance(7 * SECOND)

    assert await depths(db) == {
        "q": depth("q", 7 * SECOND, due=4, scheduled=1, running=1, held=1, failed=1)
    }


async def test_a_queue_that_a_worker_serves_or_an_operator_set_is_there_with_zeros(
    db: Database,
) -> None:
    """An autoscaler that brings workers back from none reads them, a part of R39."""
    await db.run(
        db.store.workers.register(NewWorker(A, "me", "host", 1, "1.0", ["served", "*"], 10))
    )
    await db.run(db.store.queues.limit("limited", 5, BY))
    await db.run(db.store.queues.pause("*", BY))
    assert await depths(db) == {"served": depth("served"), "limited": depth("limited")}


async def test_of_a_remote_worker_only_listed_queues_are_known(db: Database) -> None:
    """A name that a pattern of its token matches may be made up."""
    invented = NewWorker(A, "me", "host", 1, "1.0", ["named", "x.1", "x.2"], 1, listed=["named"])
    await db.run(db.store.workers.register(invented))
    assert await depths(db) == {"named": depth("named")}


async def test_usage_counts_live_jobs_and_estimates_bytes(db: Database) -> None:
    await running(db)
    await enqueue(db, held=True)
    for queue in ("a.1", "a.2", "b"):
        await enqueue(db, queue=queue, args={"text": "x" * 1000})

    async def usage(*queues: str, most: int = 100) -> tuple[int, int]:
        found = await db.run(db.store.stats.usage(queues, most=most))
        return found.jobs, found.payload_bytes

    assert await usage("q") == (2, 0)
    jobs, size = await usage("a.*")
    assert (jobs, 2000 <= size < 2200) == (2, True)
    assert (await usage("*"))[0] == 5
    assert (await usage("b", "a.1"))[0] == 2
    assert (await usage("a.*", most=1))[0] == 1
    assert await usage("none", "none.*") == (0, 0)


@pytest.mark.parametrize("only", ["held", "failed", "running"])
async def test_a_queue_is_known_by_whatever_is_left_in_it(db: Database, only: str) -> None:
    if only == "held":
        await enqueue(db, held=True)
    elif only == "failed":
        await dead_letter(db)
    else:
        await running(db)
    assert await depths(db) == {"q": depth("q", **{only: 1})}


async def test_beyond_the_bound_there_are_more(db: Database) -> None:
    for priority in (1, 1, 2, 2):
        await enqueue(db, priority=priority)
    for _ in range(3):
        await enqueue(db, delay=DAY)
    for _ in range(4):
        await running(db, queue="other")

    found = await depths(db, most=3)
    assert (found["q"].due, found["q"].scheduled) == (Count(3, more=True), Count(3))
    assert found["other"].running == Count(4, more=True)
    assert str(found["q"].due) == "3+"
