"""Idempotency keys: the same request is done once and answered the same, for a day."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure.errors import IdempotencyConflict, InvalidValue, PayloadError
from tests.conformance.acts import a_job, count

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import Json
    from tenure._store.steps import Op

DAY = timedelta(days=1)


def enqueuing(db: Database) -> Op[Json]:
    answers = yield from db.store.jobs.enqueue([a_job(), a_job(key="k")])
    return [answer.id for answer in answers]


def once(db: Database, digest: str = "d", *, key: str = "key", actor: str = "ada") -> Op[object]:
    return db.store.tokens.once(actor, key, digest, enqueuing(db))


async def test_the_same_again_is_answered_the_same_and_done_once(db: Database) -> None:
    """Shows R36."""
    ids, repeated = await db.run(db.store.tokens.once("ada", "key", "d", enqueuing(db)))
    assert not repeated
    db.clock.advance(DAY - SECOND)
    assert await db.run(once(db)) == (ids, True)
    assert await count(db, "job") == 2


async def test_another_request_with_the_same_key_is_refused_and_changes_nothing(
    db: Database,
) -> None:
    """Shows R36."""
    first = await db.run(once(db))
    with pytest.raises(IdempotencyConflict):
        await db.run(once(db, "other"))
    assert await count(db, "job") == 2
    assert await db.run(once(db)) == (first[0], True)  # type: ignore[index]


async def test_keys_are_each_actors_own(db: Database) -> None:
    await db.run(once(db))
    assert (await db.run(db.store.tokens.once("bob", "key", "d", enqueuing(db))))[1] is False
    assert (await db.run(db.store.tokens.once("ada", "other", "d", enqueuing(db))))[1] is False


@pytest.mark.parametrize("digest", ["d", "other"])
async def test_key_is_free_after_a_day_without_pruning(db: Database, digest: str) -> None:
    await db.run(once(db))
    db.clock.advance(DAY)
    assert (await db.run(db.store.tokens.once("ada", "key", digest, enqueuing(db))))[1] is False
    assert await count(db, "idempotency") == 1
    assert (await db.run(db.store.tokens.once("ada", "key", digest, enqueuing(db))))[1] is True


async def test_what_failed_is_not_remembered(db: Database) -> None:
    """Shows R18."""

    def failing() -> Op[Json]:
        yield from db.store.jobs.enqueue([a_job()])
        raise PayloadError("no")

    with pytest.raises(PayloadError):
        await db.run(db.store.tokens.once("ada", "key", "d", failing()))
    assert await count(db, "idempotency") == await count(db, "job") == 0
    assert (await db.run(db.store.tokens.once("ada", "key", "d", enqueuing(db))))[1] is False


async def test_answers_are_pruned_after_a_day(db: Database) -> None:
    await db.run(once(db))
    db.clock.advance(SECOND)
    await db.run(once(db, key="younger"))
    db.clock.advance(DAY - SECOND)
    assert (await db.run(db.store.maintenance.maintain())).pruned_answers == 0
    db.clock.advance(SECOND)
    assert (await db.run(db.store.maintenance.maintain())).pruned_answers == 1
    assert await count(db, "idempotency", "key = 'younger'") == 1


@pytest.mark.parametrize(("actor", "key"), [("", "k"), ("ada", ""), ("ada", "k" * 401)])
async def test_a_key_that_an_index_cannot_hold_is_refused(
    db: Database, actor: str, key: str
) -> None:
    with pytest.raises(InvalidValue):
        await db.run(once(db, actor=actor, key=key))
