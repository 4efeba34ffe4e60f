"""Dead letters: retried, discarded, pruned and replaced at once, they live once or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from support.race_helpers import BY, dead_letter, job, state, waiting
from tenure._model.job import EnqueueResult, State
from tenure._model.results import RetryResult, RetryStatus

if TYPE_CHECKING:
    from support.store import Database

DAY = timedelta(days=1)
KEPT = timedelta(days=90)
KEYED = [job(key="k")]


async def test_pruning_skips_the_dead_letter_that_is_being_retried(db: Database) -> None:
    """An operator who was told that the job is back must find it alive. Shows R15, R36."""
    dead = await dead_letter(db)
    db.clock.advance(KEPT + DAY)
    operator, upkeep = await db.party("operator"), await db.party("upkeep")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.retry([dead], BY)) == [
            RetryResult(RetryStatus.RETRIED)
        ]
        assert await upkeep.run(db.store.maintenance._prune("prune_failed", keep=KEPT)) == 0

    assert await state(db, dead) is State.QUEUED


async def test_retry_behind_pruning_answers_too_late(
    db: Database,
) -> None:
    """What is gone for good cannot be brought back half. Shows R15, R36."""
    dead = await dead_letter(db)
    db.clock.advance(KEPT + DAY)
    upkeep, operator = await db.party("upkeep"), await db.party("operator")

    async with upkeep.transaction() as tx:
        assert await tx.run(db.store.maintenance._prune("prune_failed", keep=KEPT)) == 1
        retry = await waiting(db, operator, db.store.job_commands.retry([dead], BY))

    assert await retry == [RetryResult(RetryStatus.NOT_FAILED)]
    assert await state(db, dead) is None
    assert await db.run(db.store.audit.list(f"job:{dead}")) == []


async def test_of_two_retries_of_one_dead_letter_one_brings_it_back(db: Database) -> None:
    """Two operators press the same button; the job has one new life. Shows R15."""
    dead = await dead_letter(db)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        assert await tx.run(db.store.job_commands.retry([dead], BY)) == [
            RetryResult(RetryStatus.RETRIED)
        ]
        again = await waiting(db, other, db.store.job_commands.retry([dead], BY))

    assert await again == [RetryResult(RetryStatus.NOT_FAILED)]
    assert await state(db, dead) is State.QUEUED


async def test_a_discard_that_waits_behind_a_retry_deletes_nothing(db: Database) -> None:
    """The job lives again; its items are its own. Shows R15."""
    dead = await dead_letter(db)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(db.store.job_commands.retry([dead], BY))
        discard = await waiting(db, other, db.store.job_commands.discard([dead], BY))

    assert await discard == [False]
    assert await state(db, dead) is State.QUEUED


async def test_a_retry_that_waits_behind_a_keyed_enqueue_names_the_younger_job(
    db: Database,
) -> None:
    """A dead letter must not come back beside the job that took its key. Shows R15, R17."""
    dead = await dead_letter(db, key="k")
    caller, operator = await db.caller("caller"), await db.party("operator")

    async with caller.transaction() as tx:
        [younger] = await tx.run(db.store.jobs.enqueue(KEYED))
        retry = await waiting(db, operator, db.store.job_commands.retry([dead], BY))

    assert younger.created
    assert await retry == [RetryResult(RetryStatus.KEY_HELD, younger.id)]
    assert await state(db, dead) is State.FAILED


async def test_a_keyed_enqueue_that_waits_behind_a_retry_finds_the_retried_job(
    db: Database,
) -> None:
    """The dead letter is alive again and has its key. Shows R15, R17."""
    dead = await dead_letter(db, key="k")
    operator, caller = await db.party("operator"), await db.party("caller")

    async with operator.transaction() as tx:
        assert await tx.run(db.store.job_commands.retry([dead], BY)) == [
            RetryResult(RetryStatus.RETRIED)
        ]
        enqueue = await waiting(db, caller, db.store.jobs.enqueue(KEYED))

    assert await enqueue == [EnqueueResult(dead, created=False)]
