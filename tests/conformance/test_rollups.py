"""Counts per minute: each ended attempt in one of them, once, however late it was committed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.attempt import AttemptOutcome
from tenure._model.outcome import Failed, Snoozed, Succeeded
from tenure._rules.stats import BOUNDS
from tests.conformance.acts import (
    BY,
    DAY,
    ERROR,
    claim,
    count,
    ended,
    enqueue,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.stats import Stats

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def db(db: Database) -> Database:
    """The clock stands at the beginning of a minute."""
    db.clock.now = db.clock.now.replace(second=0) + MINUTE
    return db


async def fold_all(db: Database) -> int:
    """Fold until nothing is left; answers with how many minutes that were."""
    folded = 0
    if not await count(db, "rollup_state"):
        assert await db.run(db.store.stats.roll_up()) == 0
    while minutes := await db.run(db.store.stats.roll_up()):
        folded += minutes
    return folded


async def stats(db: Database, **requested: Any) -> Stats:
    return await db.run(db.store.stats.over_time(**{"step": MINUTE, **requested}))


async def completed(db: Database, task: str = "task", queue: str = "q") -> None:
    """A job that waits 3 s and runs 20 s."""
    await enqueue(db, task, queue=queue)
    db.clock.advance(3 * SECOND)
    [claimed] = await claim(db, queues=[queue])
    db.clock.advance(20 * SECOND)
    await settle(db, claimed, Succeeded())


async def final(db: Database) -> None:
    """Fold until what was closed is final: other tests' transactions on the server end first."""
    async with asyncio.timeout(30):
        while await count(db, "rollup_state", "final_to < counted_until") or await fold_all(db):
            await fold_all(db)


async def test_a_closed_minute_is_counted_with_waits_and_running_times(db: Database) -> None:
    """Shows R37."""
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    found = (await stats(db)).whole

    assert found.outcomes[AttemptOutcome.COMPLETED] == 1
    assert sum(found.outcomes.values()) == 1
    assert (found.wait.count, found.wait.sum) == (1, 3 * SECOND)
    assert (found.run.count, found.run.sum) == (1, 20 * SECOND)
    assert found.wait.buckets[BOUNDS.index(5)] == 1
    assert found.run.buckets[BOUNDS.index(30)] == 1
    assert found.run.p50 == 20 * SECOND


async def test_every_outcome_is_counted_by_its_name(db: Database) -> None:
    await settle(db, await running(db), Succeeded())
    await settle(db, await running(db, max_attempts=1), Failed(ERROR))
    await settle(db, await running(db), Snoozed(DAY))
    claimed = await running(db)
    await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
    await lose(db, await running(db))
    db.clock.advance(2 * MINUTE)
    await fold_all(db)

    outcomes = (await stats(db)).whole.outcomes
    values = {
        AttemptOutcome.COMPLETED,
        AttemptOutcome.FAILED,
        AttemptOutcome.SNOOZED,
        AttemptOutcome.REVOKED,
        AttemptOutcome.LOST,
    }
    assert {ending for ending, n in outcomes.items() if n == 1} == values
    assert sum(outcomes.values()) == len(values)


async def test_a_minute_that_is_not_over_by_the_lag_is_left_alone(db: Database) -> None:
    await settle(db, await running(db), Succeeded())
    db.clock.advance(MINUTE + 9 * SECOND)
    assert await fold_all(db) == 0
    db.clock.advance(SECOND)
    assert await fold_all(db) > 0


async def test_queue_and_task_are_distinguished(db: Database) -> None:
    await completed(db, "one", "mail")
    await completed(db, "other", "mail")
    await completed(db, "one", "bulk")
    db.clock.advance(2 * MINUTE)
    await fold_all(db)

    for request, expected in (
        ({}, 3),
        ({"queue": "mail"}, 2),
        ({"task": "one"}, 2),
        ({"queue": "mail", "task": "one"}, 1),
        ({"queue": "none"}, 0),
    ):
        assert (await stats(db, **request)).whole.outcomes[AttemptOutcome.COMPLETED] == expected


async def test_steps_have_what_ended_in_them_and_add_up(db: Database) -> None:
    await completed(db)
    db.clock.advance(5 * MINUTE)
    await completed(db)
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)

    found = await stats(db, step=2 * MINUTE)
    per_step = [step.outcomes[AttemptOutcome.COMPLETED] for step in found.steps]
    assert sum(per_step) == found.whole.outcomes[AttemptOutcome.COMPLETED] == 3
    assert len(found.steps) == 30
    assert sum(map(bool, per_step)) > 1
    assert found.whole.run.sum == 60 * SECOND


async def test_folding_again_changes_nothing(db: Database) -> None:
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await final(db)
    before = await db.fetch("SELECT * FROM tenure.rollup_minute")
    await db.fetch("UPDATE tenure.rollup_state SET final_to = 'epoch', counted_until = marked_to")
    await final(db)
    assert await db.fetch("SELECT * FROM tenure.rollup_minute") == before


async def test_an_attempt_that_is_committed_late_is_counted_in_its_minute(db: Database) -> None:
    """Its end is a time inside a transaction that stays open for an hour; many minutes are folded
    meanwhile. Shows R37."""
    await db.party("main")
    late = await running(db)
    caller = await db.caller("caller")
    async with caller.transaction() as tx:
        await tx.run(
            db.store.settlement.settle_within(late.lease, ended(late, Succeeded()).settlement)
        )
        for _ in range(20):
            db.clock.advance(3 * MINUTE)
            await settle(db, await running(db), Succeeded())
            await fold_all(db)
        db.clock.advance(2 * MINUTE)
        await fold_all(db)
        since = db.clock.now - 90 * MINUTE
        found = await stats(db, since=since)
        assert found.whole.outcomes[AttemptOutcome.COMPLETED] == 20

    await final(db)
    found = await stats(db, since=since)
    assert found.whole.outcomes[AttemptOutcome.COMPLETED] == 21
    [first] = [step for step in found.steps if step.until == db.clock.now - 61 * MINUTE]
    assert first.outcomes[AttemptOutcome.COMPLETED] == 1


async def test_one_rollup_runs_at_a_time_without_waiters(db: Database) -> None:
    await db.party("main")
    await completed(db)
    db.clock.advance(2 * MINUTE)
    assert await db.run(db.store.stats.roll_up()) == 0, "it begins"
    first, second = await db.caller("first"), await db.party("second", lock_timeout="1ms")
    async with first.transaction() as tx:
        assert await tx.run(db.store.stats.roll_up()) == 1
        assert await second.run(db.store.stats.roll_up()) == 0
    assert (await stats(db)).whole.outcomes[AttemptOutcome.COMPLETED] == 1


async def test_a_clock_that_was_set_back_loses_no_minute(db: Database) -> None:
    db.clock.advance(DAY)
    await final(db)
    db.clock.advance(-DAY)
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    assert (await stats(db)).whole.outcomes[AttemptOutcome.COMPLETED] == 1


async def test_a_mark_of_another_server_does_not_stop_folding(db: Database) -> None:
    """After a dump and restore the numbers of transactions start again."""
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    await db.fetch(
        "UPDATE tenure.rollup_state SET final_to = 'epoch', mark = '9000000000000000000'::xid8"
    )
    await final(db)
    [row] = await db.fetch("SELECT final_to = counted_until AS final FROM tenure.rollup_state")
    assert row["final"]


async def test_counts_outlive_their_attempts(db: Database) -> None:
    """A minute whose attempts are gone is not emptied by folding it again."""
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    await db.fetch("DELETE FROM tenure.attempt")
    await db.fetch("UPDATE tenure.rollup_state SET final_to = 'epoch'")
    await final(db)
    assert (await stats(db)).whole.outcomes[AttemptOutcome.COMPLETED] == 1


async def test_counts_are_kept_for_thirty_days_or_as_set(db: Database) -> None:
    await completed(db)
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    db.clock.advance(29 * DAY)
    assert (await db.run(db.store.maintenance.maintain())).pruned_rollups == 0
    await db.run(db.store.settings.set("keep_rollups_days", 28, BY))
    assert (await db.run(db.store.maintenance.maintain())).pruned_rollups == 4
    assert await count(db, "rollup_minute") == 0


async def test_it_says_up_to_when_minutes_are_counted(db: Database) -> None:
    assert (await stats(db)).counted_until is None
    await db.run(db.store.stats.roll_up())
    db.clock.advance(11 * SECOND)
    await db.run(db.store.stats.roll_up())
    assert (await stats(db)).counted_until == db.clock.now.replace(second=0)


async def test_the_days_that_upkeep_makes_have_the_index_that_folding_reads_by(
    db: Database,
) -> None:
    db.clock.advance(3 * DAY)
    await db.run(db.store.maintenance.maintain())
    without = await db.fetch(
        "SELECT p.relid FROM pg_partition_tree('tenure.attempt') AS p WHERE p.isleaf "
        "AND NOT EXISTS (SELECT FROM pg_indexes AS i WHERE i.schemaname = 'tenure' "
        "AND 'tenure.' || i.tablename = p.relid::text AND i.indexdef LIKE '%(ended_at)')"
    )
    assert without == []
