"""Two requests with one idempotency key at once: the second is seen waiting for the first."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import job, undone, waiting
from tenure.errors import IdempotencyConflict

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import Json
    from tenure._store.steps import Op


def enqueuing(db: Database) -> Op[Json]:
    answers = yield from db.store.jobs.enqueue([job()])
    return [answer.id for answer in answers]


def once(db: Database, digest: str = "d") -> Op[tuple[Json, bool]]:
    return db.store.tokens.once("ada", "key", digest, enqueuing(db))


async def test_the_second_waits_and_has_the_firsts_answer(db: Database) -> None:
    """A client that was cut off and tried again at once makes no second job. Shows R36."""
    await db.party("main")
    one, other = await db.caller("one"), await db.party("other")
    async with one.transaction() as tx:
        ids, repeated = await tx.run(once(db))
        again = await waiting(db, other, once(db))
    assert not repeated
    assert await again == (ids, True)
    assert len(await db.fetch("SELECT id FROM tenure.job")) == 1


async def test_the_second_does_it_if_the_first_is_rolled_back(db: Database) -> None:
    """No caller gets a job that never existed. Shows R36, R18."""
    await db.party("main")
    one, other = await db.caller("one"), await db.party("other")
    async with undone(one) as tx:
        await tx.run(once(db))
        again = await waiting(db, other, once(db))
    ids, repeated = await again
    assert not repeated
    assert [row["id"] for row in await db.fetch("SELECT id FROM tenure.job")] == ids


async def test_another_request_waits_and_is_refused(db: Database) -> None:
    """Shows R36."""
    await db.party("main")
    one, other = await db.caller("one"), await db.party("other")
    async with one.transaction() as tx:
        await tx.run(once(db))
        again = await waiting(db, other, once(db, "other"))
    with pytest.raises(IdempotencyConflict):
        await again


async def test_a_key_that_is_in_use_again_is_not_pruned(db: Database) -> None:
    await db.run(once(db))
    db.clock.advance(timedelta(days=2))
    caller = await db.caller("caller")
    async with caller.transaction():
        await caller.connection.execute("SELECT FROM tenure.idempotency FOR UPDATE")
        assert (await db.run(db.store.maintenance.maintain())).pruned_answers == 0
    assert (await db.run(db.store.maintenance.maintain())).pruned_answers == 1
