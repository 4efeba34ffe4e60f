"""Keys: one living job per task and key, and for a while after if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.ids import JobId
from tenure._model.job import EnqueueResult, State
from tenure._model.outcome import Cancelled, Failed, Released, Snoozed, Succeeded
from tenure._model.results import FreeResult, FreeStatus
from tenure.config import FOREVER, LONGEST_WAIT
from tests.conformance.acts import (
    BY,
    ERROR,
    OWN,
    a_job,
    claim_one,
    count,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome


async def again(db: Database, **fields: Any) -> EnqueueResult:
    [answer] = await db.run(db.store.jobs.enqueue([a_job(key="k", **fields)]))
    return answer


async def test_a_second_enqueue_of_a_key_returns_the_first_job(db: Database) -> None:
    """Shows R17."""
    first = await enqueue(db, key="k", args={"n": 1})

    assert await again(db, args={"n": 2}, priority=9) == EnqueueResult(first, created=False)
    job = await get(db, first)
    assert (job.args, job.priority, job.key) == ({"n": 1}, 5, "k")
    assert await count(db, "job") == 1


async def test_a_key_belongs_to_its_task_whatever_the_queue(db: Database) -> None:
    """Shows R17."""
    first = await enqueue(db, "one", key="k")
    other = await enqueue(db, "two", key="k")
    elsewhere = await enqueue(db, "one", key="k", queue="elsewhere")

    assert first != other
    assert elsewhere == first


async def test_an_answer_that_finds_a_key_taken_writes_too(db: Database) -> None:
    """So that it is as durable as the job whose name it gives."""
    await enqueue(db, key="k")
    [before] = await db.fetch("SELECT xmin::text AS writer FROM tenure.job_key")
    await again(db)
    [after] = await db.fetch("SELECT xmin::text AS writer, hits FROM tenure.job_key")

    assert after["writer"] != before["writer"]
    assert after["hits"] == 2


@pytest.mark.parametrize(
    "outcome", [Failed(ERROR), Snoozed(SECOND), Released()], ids=["retry", "snooze", "release"]
)
async def test_a_key_is_held_as_long_as_the_job_lives(db: Database, outcome: Outcome) -> None:
    claimed = await running(db, key="k")
    assert await again(db) == EnqueueResult(claimed.job.id, created=False)
    await settle(db, claimed, outcome)

    assert await again(db) == EnqueueResult(claimed.job.id, created=False)


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(), Failed(ERROR, retryable=False), Cancelled()],
    ids=["completed", "failed", "cancelled"],
)
async def test_a_key_is_free_when_its_job_has_ended(db: Database, outcome: Outcome) -> None:
    claimed = await running(db, key="k")
    await settle(db, claimed, outcome)
    answer = await again(db)

    assert answer.created
    assert answer.id > claimed.job.id


async def ended_by_cancel(db: Database) -> JobId:
    job_id = await enqueue(db, key="k")
    await db.run(db.store.job_commands.cancel([job_id], BY))
    return job_id


async def ended_by_revoke(db: Database) -> JobId:
    claimed = await running(db, key="k")
    await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
    return claimed.job.id


async def ended_by_loss(db: Database) -> JobId:
    claimed = await running(db, key="k", max_losses=1)
    await settle(db, claimed, OWN)
    return claimed.job.id


async def ended_by_rescue(db: Database) -> JobId:
    claimed = await running(db, key="k", max_losses=0)
    await lose(db, claimed)
    return claimed.job.id


@pytest.mark.parametrize("end", [ended_by_cancel, ended_by_revoke, ended_by_loss, ended_by_rescue])
async def test_a_key_is_free_however_its_job_was_ended(db: Database, end: object) -> None:
    assert callable(end)
    job_id = await end(db)
    assert not (await get(db, job_id)).state.is_live

    assert (await again(db)).created


async def test_a_key_can_be_kept_for_a_while_after_the_end(db: Database) -> None:
    """Shows R17."""
    claimed = await running(db, key="k", key_for=60 * SECOND)
    await settle(db, claimed, Succeeded())
    db.clock.advance(59 * SECOND)
    assert await again(db) == EnqueueResult(claimed.job.id, created=False)

    db.clock.advance(SECOND)
    assert (await again(db)).created


@pytest.mark.parametrize("end", ["cancel", "revoke", "loss", "rescue"])
async def test_every_end_keeps_the_key_for_its_duration(db: Database, end: str) -> None:
    job_id = await enqueue(db, key="k", key_for=60 * SECOND, max_losses=0)
    match end:
        case "cancel":
            await db.run(db.store.job_commands.cancel([job_id], BY))
        case "revoke":
            await claim_one(db)
            await db.run(db.store.job_commands.revoke([job_id], BY))
        case "loss":
            await settle(db, await claim_one(db), OWN)
        case _:
            await lose(db, await claim_one(db))
    db.clock.advance(59 * SECOND)
    assert await again(db) == EnqueueResult(job_id, created=False)

    db.clock.advance(SECOND)
    assert (await again(db)).created


@pytest.mark.parametrize("end", ["complete", "fail", "cancel", "revoke", "loss", "rescue"])
async def test_a_key_kept_forever_outlives_its_job_and_all_upkeep(db: Database, end: str) -> None:
    """Its job, attempts and dead letter are pruned. Only an operator frees the key.

    Shows R17.
    """
    job_id = await enqueue(db, key="k", key_for=FOREVER, max_losses=0)
    match end:
        case "complete":
            await settle(db, await claim_one(db), Succeeded())
        case "fail":
            await settle(db, await claim_one(db), Failed(ERROR, retryable=False))
        case "cancel":
            await db.run(db.store.job_commands.cancel([job_id], BY))
        case "revoke":
            await claim_one(db)
            await db.run(db.store.job_commands.revoke([job_id], BY))
        case "loss":
            await settle(db, await claim_one(db), OWN)
        case _:
            await lose(db, await claim_one(db))
    # Long after the time for which any other key can be kept.
    db.clock.advance(LONGEST_WAIT * 2)
    for _ in range(3):
        assert (await db.run(db.store.maintenance.maintain())).pruned_keys == 0
    assert await db.run(db.store.jobs.get(job_id)) is None
    assert await again(db) == EnqueueResult(job_id, created=False)

    freed = await db.run(db.store.job_commands.free_key(a_job().task, "k", BY))
    assert freed == FreeResult(FreeStatus.FREED, job_id)
    assert (await again(db)).created


async def test_the_longest_other_key_ends(db: Database) -> None:
    claimed = await running(db, key="k", key_for=LONGEST_WAIT - SECOND)
    await settle(db, claimed, Succeeded())
    db.clock.advance(LONGEST_WAIT)

    assert (await again(db)).created


async def test_the_end_of_an_older_job_does_not_free_the_key_of_a_younger_one(
    db: Database,
) -> None:
    old = await running(db, key="k", max_attempts=1)
    await settle(db, old, Failed(ERROR))
    young = await again(db)
    assert await db.run(db.store.job_commands.discard([old.job.id], BY)) == [True]

    assert await again(db) == EnqueueResult(young.id, created=False)
    assert (await get(db, young.id)).state is State.QUEUED


async def test_a_key_of_a_job_that_does_not_exist_can_be_freed(db: Database) -> None:
    """A producer's role may write such a row. Enqueues with the key then create no job."""
    job = await enqueue(db, key="k")
    await db.fetch("UPDATE tenure.job_key SET job_id = job_id + 1000")
    assert await again(db) == EnqueueResult(JobId(job + 1000), created=False)

    freed = await db.run(db.store.job_commands.free_key(a_job().task, "k", BY))

    assert freed == FreeResult(FreeStatus.FREED, JobId(job + 1000))
    assert (await again(db)).created


async def test_a_key_of_a_live_job_stays(db: Database) -> None:
    job = await enqueue(db, key="k")

    kept = await db.run(db.store.job_commands.free_key(a_job().task, "k", BY))

    assert kept == FreeResult(FreeStatus.LIVE, job)
    assert await again(db) == EnqueueResult(job, created=False)
