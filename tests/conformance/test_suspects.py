"""Suspects: which losses make one, and what ends it; what progress does to the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.job import State
from tenure._model.outcome import (
    Failed,
    Released,
    Snoozed,
)
from tests.conformance.acts import (
    DIED,
    ERROR,
    OUTAGE,
    OWN,
    claim,
    claim_one,
    counters,
    enqueue,
    expire,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome


@pytest.mark.parametrize("report", [{"cursor": 8}, {"items": {"b": 1}}])
async def test_a_moved_cursor_or_a_new_item_starts_both_loss_counters_again(
    db: Database, report: dict[str, object]
) -> None:
    """Shows R22. Never the deaths, and a suspect stays one."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, cursor=7, items={"a": 1}))
    await settle(db, claimed, OWN)
    await settle(db, await claim_one(db), DIED)
    again = await claim_one(db)
    await db.run(db.store.leases.progress(again.lease, **report))  # type: ignore[arg-type] # either

    assert await counters(db, claimed.job.id) == (0, 0, 2)
    assert (await get(db, claimed.job.id)).suspect
    await settle(db, again, Released())
    assert (await get(db, claimed.job.id)).suspect


@pytest.mark.parametrize(
    "report", [{"cursor": 7}, {"items": {"a": 2}}, {"done": 5, "message": "busy"}, {}]
)
async def test_a_report_that_moves_nothing_starts_no_counter_again(
    db: Database, report: dict[str, object]
) -> None:
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, cursor=7, items={"a": 1}))
    await settle(db, claimed, OWN)
    await settle(db, await claim_one(db), DIED)
    again = await claim_one(db)
    await db.run(db.store.leases.progress(again.lease, **report))  # type: ignore[arg-type] # any of them

    assert await counters(db, claimed.job.id) == (1, 1, 2)


async def test_the_second_loss_of_a_whole_worker_in_a_row_makes_a_suspect(db: Database) -> None:
    """Shows R7."""
    claimed = await running(db)
    await lose(db, claimed)
    assert not (await get(db, claimed.job.id)).suspect
    await lose(db, await claim_one(db))
    assert (await get(db, claimed.job.id)).suspect


async def test_job_with_progress_between_losses_is_not_a_suspect(db: Database) -> None:
    job_id = await enqueue(db)
    for cursor in range(4):
        claimed = await claim_one(db)
        await db.run(db.store.leases.progress(claimed.lease, cursor=cursor))
        await expire(db, claimed)

    assert await counters(db, job_id) == (0, 1, 4)
    assert not (await get(db, job_id)).suspect


async def test_a_claim_that_never_began_makes_no_suspect_of_what_was_lost_before(
    db: Database,
) -> None:
    claimed = await running(db)
    await lose(db, claimed)
    await expire(db, await claim_one(db))
    assert not (await get(db, claimed.job.id)).suspect


@pytest.mark.parametrize(
    "end",
    [
        Failed(ERROR, after=0 * SECOND),
        Failed(ERROR, after=0 * SECOND, timed_out=True),
        Snoozed(0 * SECOND),
    ],
)
async def test_suspicion_ends_when_the_handler_comes_to_an_end(db: Database, end: Outcome) -> None:
    claimed = await running(db, max_attempts=9)
    await settle(db, claimed, DIED)
    await settle(db, await claim_one(db), end)

    job = await get(db, claimed.job.id)
    assert (job.state, job.suspect) == (State.QUEUED, False)
    fresh = await enqueue(db)
    assert [one.job.id for one in await claim(db, count=2)] == [job.id, fresh]


@pytest.mark.parametrize("end", [Released(), OUTAGE])
async def test_suspicion_does_not_end_with_a_release(db: Database, end: Outcome) -> None:
    claimed = await running(db)
    await settle(db, claimed, DIED)
    await settle(db, await claim_one(db), end)

    assert (await get(db, claimed.job.id)).suspect
    assert await counters(db, claimed.job.id) == (0, 1, 1)


async def test_released_innocent_job_is_not_a_suspect(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Released(begun=True))

    assert not (await get(db, claimed.job.id)).suspect


async def test_a_rescue_does_not_clear_a_suspect(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, DIED)
    await expire(db, await claim_one(db))

    assert (await get(db, claimed.job.id)).suspect
