"""Dead letters: looked at, brought back for a new life, or discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.store import SECOND
from tenure._model.ids import JobId
from tenure._model.job import EnqueueResult, State
from tenure._model.outcome import Failed, Succeeded
from tenure._model.results import RetryResult, RetryStatus
from tests.conformance.acts import (
    BY,
    ERROR,
    OWN,
    a_job,
    claim,
    claim_one,
    count,
    dead_letter,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database

BACK = RetryResult(RetryStatus.RETRIED)
NOT_FAILED = RetryResult(RetryStatus.NOT_FAILED)


async def test_a_retry_begins_a_new_life(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(
        db, args={"n": 1}, priority=7, max_attempts=2, key="k", meta={"m": 1}, lease=20 * SECOND
    )
    await lose(db, await claim_one(db))
    await settle(db, await claim_one(db), OWN)
    await settle(db, await claim_one(db), Failed(ERROR, after=0 * SECOND))
    await settle(db, await claim_one(db), Failed(ERROR))
    dead = await get(db, job_id)
    assert (dead.state, dead.attempt, dead.done_reason) == (State.FAILED, 2, "attempts")
    assert (dead.losses, dead.worker_losses, dead.deaths) == (1, 1, 2)
    db.clock.advance(60 * SECOND)
    assert await db.run(db.store.job_commands.retry([job_id], BY)) == [BACK]

    job = await get(db, job_id)
    assert job.state is State.QUEUED
    assert (job.attempt, job.losses, job.worker_losses, job.deaths) == (0, 0, 0, 0)
    assert not job.suspect
    assert job.token > dead.token
    assert (job.args, job.priority, job.max_attempts) == ({"n": 1}, 7, 2)
    assert (job.key, job.meta, job.created_at) == ("k", {"m": 1}, dead.created_at)
    assert job.run_at == db.clock.now
    assert await count(db, "job_failed") == 0


async def test_a_retried_job_has_all_its_attempts_again(db: Database) -> None:
    """Shows R13. Shows R15."""
    job_id = await dead_letter(db, max_attempts=2)
    await db.run(db.store.job_commands.retry([job_id], BY))

    first = await claim_one(db)
    assert (first.job.attempt, first.returned) == (1, False)
    await settle(db, first, Failed(ERROR, after=0 * SECOND))
    second = await claim_one(db)
    await settle(db, second, Succeeded())
    assert len(await db.run(db.store.jobs.attempts(job_id))) == 3


async def test_many_are_retried_at_once_and_answered_in_order(db: Database) -> None:
    """Shows R15."""
    dead = [await dead_letter(db) for _ in range(3)]
    live = await enqueue(db)
    ids = [dead[2], live, dead[0], JobId(999_999), dead[1]]
    answers = await db.run(db.store.job_commands.retry(ids, BY))

    assert answers == [BACK, NOT_FAILED, BACK, NOT_FAILED, BACK]
    assert len(await claim(db, count=9)) == 4


async def test_a_second_retry_changes_nothing(db: Database) -> None:
    job_id = await dead_letter(db)
    await db.run(db.store.job_commands.retry([job_id], BY))
    before = await get(db, job_id)

    assert await db.run(db.store.job_commands.retry([job_id], BY)) == [NOT_FAILED]
    assert await get(db, job_id) == before


async def test_a_retry_names_the_younger_job_that_holds_the_key(db: Database) -> None:
    """Shows R17."""
    old = await dead_letter(db, key="k")
    young = await enqueue(db, key="k")

    assert await db.run(db.store.job_commands.retry([old], BY)) == [
        RetryResult(RetryStatus.KEY_HELD, young)
    ]
    assert (await get(db, old)).state is State.FAILED
    [again] = await db.run(db.store.jobs.enqueue([a_job(key="k")]))
    assert again == EnqueueResult(young, created=False)


async def test_a_retry_is_free_to_go_when_the_younger_job_has_ended(db: Database) -> None:
    old = await dead_letter(db, key="k")
    young = await running(db, key="k")
    await settle(db, young, Succeeded())

    assert await db.run(db.store.job_commands.retry([old], BY)) == [BACK]
    [again] = await db.run(db.store.jobs.enqueue([a_job(key="k")]))
    assert again == EnqueueResult(old, created=False)


async def test_of_two_dead_letters_with_one_key_the_younger_comes_back(db: Database) -> None:
    """Shows R17."""
    old = await dead_letter(db, key="k")
    young = await dead_letter(db, key="k")

    answers = await db.run(db.store.job_commands.retry([old, young], BY))
    assert answers == [RetryResult(RetryStatus.KEY_HELD, young), BACK]
    assert (await get(db, old)).state is State.FAILED


async def test_a_discarded_dead_letter_is_gone_with_its_items(db: Database) -> None:
    """Shows R15."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))
    await settle(db, claimed, Failed(ERROR, retryable=False))
    kept = await dead_letter(db)
    live = await enqueue(db)

    ids = [claimed.job.id, live, JobId(999_999)]
    assert await db.run(db.store.job_commands.discard(ids, BY)) == [True, False, False]
    assert await db.run(db.store.jobs.get(claimed.job.id)) is None
    assert await count(db, "job_item") == 0
    assert (await get(db, kept)).state is State.FAILED
    assert (await get(db, live)).state is State.QUEUED
