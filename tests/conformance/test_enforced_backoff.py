"""The settings' backoff as a minimum, which the statement that settles a failure enforces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.job import State
from tenure._model.outcome import Failed, Released, Snoozed
from tests.conformance.acts import BY, ERROR, claim_one, ended, get, running, settle

if TYPE_CHECKING:
    from datetime import timedelta

    from support.store import Database


async def enforce(db: Database, **settings: float) -> None:
    for name, value in {"backoff_enforced": True, **settings}.items():
        await db.run(db.store.settings.set(name, value, BY))


async def wait(db: Database, failed: Failed, *, attempts: int = 1) -> timedelta:
    """How long a job waits after this many failures that name no wait of their own."""
    claimed = await running(db, max_attempts=100)
    for _ in range(attempts - 1):
        await db.run(
            db.store.settlement.settle([ended(claimed, Failed(ERROR), backoff=0 * SECOND)])
        )
        db.clock.advance(3600 * SECOND)
        claimed = await claim_one(db)
    await db.run(db.store.settlement.settle([ended(claimed, failed, backoff=0 * SECOND)]))
    run_at = (await get(db, claimed.job.id)).run_at
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))
    return run_at - db.clock.now


@pytest.mark.parametrize("after", [None, 0 * SECOND, 5 * SECOND])
@pytest.mark.parametrize(("attempts", "seconds"), [(1, 30), (2, 60), (3, 120), (8, 3600)])
async def test_a_shorter_wait_is_raised_to_the_settings_backoff(
    db: Database, attempts: int, seconds: int, after: timedelta | None
) -> None:
    """Whatever the worker, the task or the handler says. Shows R38."""
    await enforce(db)
    assert await wait(db, Failed(ERROR, after=after), attempts=attempts) == seconds * SECOND


async def test_changed_settings_are_enforced_from_the_next_failure_on(db: Database) -> None:
    """Shows R38."""
    await enforce(db, backoff_base=7, backoff_cap=10)
    assert await wait(db, Failed(ERROR, after=0 * SECOND)) == 7 * SECOND
    assert await wait(db, Failed(ERROR, after=0 * SECOND), attempts=2) == 10 * SECOND
    await db.run(db.store.settings.set("backoff_base", 9, BY))
    assert await wait(db, Failed(ERROR, after=0 * SECOND)) == 9 * SECOND


async def test_a_longer_wait_stays(db: Database) -> None:
    await enforce(db)
    assert await wait(db, Failed(ERROR, after=600 * SECOND)) == 600 * SECOND


@pytest.mark.parametrize("value", [False, None])
async def test_without_the_setting_the_workers_wait_counts(
    db: Database, *, value: bool | None
) -> None:
    if value is not None:
        await db.run(db.store.settings.set("backoff_enforced", value, BY))
    assert await wait(db, Failed(ERROR, after=5 * SECOND)) == 5 * SECOND


async def test_what_is_not_a_failure_waits_as_it_says(db: Database) -> None:
    """A snooze and a release use no attempt."""
    await enforce(db)
    snoozed, released = await running(db), await running(db)
    await settle(db, snoozed, Snoozed(SECOND))
    await settle(db, released, Released())

    assert (await get(db, snoozed.job.id)).run_at == db.clock.now + SECOND
    assert (await get(db, released.job.id)).run_at <= db.clock.now


async def test_the_last_attempt_is_a_dead_letter_as_before(db: Database) -> None:
    await enforce(db)
    claimed = await running(db, max_attempts=1)
    await settle(db, claimed, Failed(ERROR, after=0 * SECOND))

    assert (await get(db, claimed.job.id)).state is State.FAILED
