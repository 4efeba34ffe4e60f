"""The attempts of a dead letter, which are kept as long as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, B
from tenure._model.outcome import Failed
from tenure.errors import Error
from tests.conformance.acts import (
    ERROR,
    OWN,
    claim_one,
    ended,
    enqueue,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database


@pytest.mark.parametrize("end", ["failed", "own", "rescue"])
async def test_a_dead_letter_keeps_its_attempts_after_their_days_were_dropped(
    db: Database, end: str
) -> None:
    """Shows R16. With trace and log, and the last one too."""
    on_loss = 0 if end == "rescue" else 1
    claimed = await running(db, max_attempts=2, max_losses=on_loss)
    error = Error("ValueError", "no such thing", trace="line 1\nline 2")
    first = ended(claimed, Failed(error, after=0 * SECOND), log="what it said")
    await db.run(db.store.settlement.settle([first]))
    last = await claim_one(db, worker=B)
    match end:
        case "failed":
            await db.run(
                db.store.settlement.settle([ended(last, Failed(error), log="its last word")])
            )
        case "own":
            await db.run(db.store.settlement.settle([ended(last, OWN, log="its last word")]))
        case _:
            await lose(db, last)
    before = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert [one.token for one in before] == [claimed.lease.token, last.lease.token]
    assert (before[0].error_trace, before[0].log) == ("line 1\nline 2", "what it said")
    assert before[1].log == (None if end == "rescue" else "its last word")

    for day in await db.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits "
        "WHERE inhparent = 'tenure.attempt'::regclass"
    ):
        await db.fetch(f"DROP TABLE {day['name']}")
    assert await db.run(db.store.jobs.attempts(claimed.job.id)) == before


async def test_a_settle_that_comes_again_is_seen_while_the_day_is_there(db: Database) -> None:
    """The copy of a dead letter is only for what is no longer there."""
    claimed = await running(db, max_attempts=1)
    for _ in range(2):
        await settle(db, claimed, Failed(ERROR))

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.settle_repeats == 1


async def test_a_dead_letter_keeps_the_last_attempts_of_many(db: Database) -> None:
    job_id = await enqueue(db, max_attempts=30)
    for _ in range(30):
        await settle(db, await claim_one(db), Failed(ERROR, after=0 * SECOND))
    attempts = await db.run(db.store.jobs.attempts(job_id))
    assert len(attempts) == 30
    await db.fetch("DELETE FROM tenure.attempt")

    assert await db.run(db.store.jobs.attempts(job_id)) == attempts[-21:]
