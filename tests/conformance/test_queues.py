"""Queues: paused, resumed, given a lease and attempts of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, A, lanes
from tenure._model.audit import By
from tenure._model.outcome import Released
from tenure._model.queue import QueueRow
from tenure.errors import InvalidValue
from tests.conformance.acts import BY, a_job, claim, enqueue, get, running, settle, unread

if TYPE_CHECKING:
    from support.store import Database


@pytest.mark.parametrize("limited", [False, True], ids=["unlimited", "limited"])
async def test_nothing_is_claimed_from_a_paused_queue(db: Database, *, limited: bool) -> None:
    """Shows R38."""
    if limited:
        await db.run(db.store.queues.limit("b", 5, BY))
    await db.run(db.store.jobs.enqueue([a_job(queue="a"), a_job(queue="b")]))
    given_back = await running(db, queue="c")
    await settle(db, given_back, Released())
    await db.run(db.store.queues.pause("a", BY))
    await db.run(db.store.queues.pause("c", BY))
    claims = await db.run(db.store.leases.claim(lanes("a", "b", "c"), count=9, worker=A))

    assert [claimed.job.queue for claimed in claims.jobs] == ["b"]
    assert unread(claims, "a")
    assert unread(claims, "c")
    assert unread(claims, "b") is limited


async def test_a_pause_says_by_whom_and_why(db: Database) -> None:
    until = db.clock.now + 60 * SECOND
    by = By("grace", reason="a flood")
    row = await db.run(db.store.queues.pause("q", by, until=until))

    assert row == QueueRow("q", db.clock.now, until, "grace", "a flood")
    assert await db.run(db.store.queues.list()) == [row]


async def test_resumed_queue_continues(db: Database) -> None:
    await enqueue(db)
    await db.run(db.store.queues.pause("q", BY))
    assert await claim(db) == []

    assert await db.run(db.store.queues.resume("q", BY)) == QueueRow("q")
    assert len(await claim(db)) == 1


async def test_a_pause_ends_by_itself_at_its_time(db: Database) -> None:
    await enqueue(db)
    await db.run(db.store.queues.pause("q", BY, until=db.clock.now + 60 * SECOND))
    db.clock.advance(59 * SECOND)
    assert await claim(db) == []

    db.clock.advance(SECOND)
    assert len(await claim(db)) == 1


@pytest.mark.parametrize("limited", [False, True], ids=["unlimited", "limited"])
async def test_all_queues_can_be_paused_at_once(db: Database, *, limited: bool) -> None:
    if limited:
        await db.run(db.store.queues.limit("*", 5, BY))
    await db.run(db.store.jobs.enqueue([a_job(queue="a"), a_job(queue="b")]))
    await db.run(db.store.queues.pause("*", BY))
    claims = await db.run(db.store.leases.claim(lanes("a", "b"), count=9, worker=A))
    assert claims.jobs == []
    assert unread(claims, "a")
    assert unread(claims, "b")

    await db.run(db.store.queues.resume("*", BY))
    assert len(await claim(db, count=9, queues=["a", "b"])) == 2


async def test_a_pause_leaves_what_runs_alone(db: Database) -> None:
    claimed = await running(db)
    await db.run(db.store.queues.pause("q", BY))
    db.clock.advance(10 * SECOND)

    [renewal] = await db.run(db.store.leases.renew([claimed.lease]))
    assert renewal.answer == "renewed"


async def test_one_change_to_a_queue_leaves_the_others_as_they_were(db: Database) -> None:
    paused_at = db.clock.now
    await db.run(db.store.queues.pause("q", BY))
    db.clock.advance(5 * SECOND)
    await db.run(db.store.queues.limit("q", 4, BY))
    row = await db.run(db.store.queues.configure("q", BY, lease=20 * SECOND, max_attempts=9))

    assert row == QueueRow(
        "q",
        paused_at=paused_at,
        paused_by="ada",
        paused_reason="because",
        max_running=4,
        lease=20 * SECOND,
        max_attempts=9,
    )
    row = await db.run(db.store.queues.resume("q", BY))
    assert row == QueueRow("q", max_running=4, lease=20 * SECOND, max_attempts=9)


async def test_a_queues_attempts_hold_from_the_next_enqueue_on(db: Database) -> None:
    """Shows R13. Shows R38."""
    before = await enqueue(db)
    await db.run(db.store.queues.configure("q", BY, lease=None, max_attempts=7))
    await db.run(db.store.settings.set("max_attempts", 5, BY))
    jobs = [a_job(), a_job(key="k"), a_job(max_attempts=2), a_job(queue="other")]
    answers = await db.run(db.store.jobs.enqueue(jobs))

    caps = [(await get(db, answer.id)).max_attempts for answer in answers]
    assert caps == [7, 7, 2, 5]
    assert (await get(db, before)).max_attempts == 3
    await db.run(db.store.queues.configure("q", BY, lease=None, max_attempts=None))
    assert (await get(db, await enqueue(db))).max_attempts == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"lease": SECOND, "max_attempts": None},
        {"lease": 25 * 3600 * SECOND, "max_attempts": None},
        {"lease": None, "max_attempts": 0},
        {"lease": None, "max_attempts": -1},
        {"lease": None, "max_attempts": 40_000},
    ],
    ids=["too short", "too long", "no attempt", "negative", "too many"],
)
async def test_a_queue_is_not_given_what_no_job_could_have(
    db: Database, settings: dict[str, Any]
) -> None:
    """Shows R38."""
    with pytest.raises(InvalidValue):
        await db.run(db.store.queues.configure("q", BY, **settings))
    assert await db.run(db.store.queues.list()) == []


@pytest.mark.parametrize("name", ["", "two words", "x" * 201])
async def test_a_name_that_no_queue_can_have_is_refused(db: Database, name: str) -> None:
    with pytest.raises(InvalidValue, match="queue name must be"):
        await db.run(db.store.queues.pause(name, BY))
