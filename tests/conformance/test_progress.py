"""Progress: cursor, counts and items of a running job; each report extends the lease."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import ProgressResult, RenewResult, RenewStatus, SettleStatus
from tenure._model.outcome import Failed, Succeeded
from tenure.errors import LeaseLost, PayloadError
from tests.conformance.acts import (
    BY,
    ERROR,
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


async def test_a_report_is_kept_with_the_job(db: Database) -> None:
    """Shows R21."""
    claimed = await running(db)
    db.clock.advance(3 * SECOND)
    op = db.store.leases.progress(
        claimed.lease, cursor={"page": 4}, done=40, total=100, message="page 4 of 10"
    )
    assert await db.run(op) == ProgressResult(0, 0, reached=False, cancel_requested=False)

    job = await get(db, claimed.job.id)
    at = job.progress.pop("at")
    assert job.cursor == {"page": 4}
    assert job.progress == {"done": 40, "total": 100, "message": "page 4 of 10"}
    assert datetime.fromisoformat(at) == db.clock.now


async def test_each_report_extends_the_lease(db: Database) -> None:
    """Shows R21."""
    claimed = await running(db, lease=20 * SECOND)
    for _ in range(5):
        db.clock.advance(19 * SECOND)
        await db.run(db.store.leases.progress(claimed.lease, done=1))
        assert (await db.run(db.store.leases.rescue())).jobs == []

    assert (await get(db, claimed.job.id)).lease_expires_at == db.clock.now + 20 * SECOND


async def test_a_report_extends_the_lease_by_the_amount_that_it_names(db: Database) -> None:
    """Neither a renewal nor a report without an amount shortens it. Shows R8. Shows R21."""
    claimed = await running(db, lease=20 * SECOND)
    db.clock.advance(SECOND)
    await db.run(db.store.leases.progress(claimed.lease, done=1, extend=100 * SECOND))
    until = db.clock.now + 100 * SECOND
    assert (await get(db, claimed.job.id)).lease_expires_at == until
    db.clock.advance(10 * SECOND)
    [renewal] = await db.run(db.store.leases.renew([claimed.lease]))
    assert renewal == RenewResult(RenewStatus.RENEWED)
    await db.run(db.store.leases.progress(claimed.lease, done=2))
    await db.run(db.store.leases.progress(claimed.lease, done=3, extend=30 * SECOND))
    assert (await get(db, claimed.job.id)).lease_expires_at == until
    db.clock.advance(79 * SECOND)
    assert (await db.run(db.store.leases.rescue())).jobs == []

    # From here on, the lease's own length reaches further.
    await db.run(db.store.leases.renew([claimed.lease]))
    assert (await get(db, claimed.job.id)).lease_expires_at == db.clock.now + 20 * SECOND
    db.clock.advance(20 * SECOND)
    [rescued] = (await db.run(db.store.leases.rescue())).jobs
    assert rescued.job_id == claimed.job.id


async def test_a_report_names_no_shorter_lease(db: Database) -> None:
    claimed = await running(db, lease=20 * SECOND)
    db.clock.advance(10 * SECOND)
    await db.run(db.store.leases.progress(claimed.lease, extend=SECOND))

    assert (await get(db, claimed.job.id)).lease_expires_at == db.clock.now + 20 * SECOND


async def test_an_extension_does_not_outlive_its_attempt(db: Database) -> None:
    claimed = await running(db, lease=20 * SECOND)
    await db.run(db.store.leases.progress(claimed.lease, extend=100 * SECOND))
    await settle(db, claimed, Failed(ERROR, after=0 * SECOND))
    again = await claim_one(db, worker=B)

    assert again.lease.ttl == 20 * SECOND
    assert (await get(db, again.job.id)).lease_expires_at == db.clock.now + 20 * SECOND


async def test_what_a_report_does_not_say_stays_as_it_was(db: Database) -> None:
    """Shows R21."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, cursor=[1], done=1, total=9))
    await db.run(db.store.leases.progress(claimed.lease, done=2))
    job = await get(db, claimed.job.id)

    assert job.cursor == [1]
    assert (job.progress["done"], job.progress["total"]) == (2, 9)


@pytest.mark.parametrize("end", ["lost", "failed"])
async def test_a_job_that_is_run_again_starts_from_the_last_cursor(db: Database, end: str) -> None:
    """Shows R22."""
    claimed = await running(db)
    await db.run(db.store.leases.progress(claimed.lease, cursor={"page": 1}, items={"a": 1}))
    await db.run(db.store.leases.progress(claimed.lease, cursor={"page": 2}, items={"b": 2}))
    if end == "lost":
        await lose(db, claimed)
    else:
        await settle(db, claimed, Failed(ERROR, after=0 * SECOND))
    again = await claim_one(db, worker=B)

    assert (again.job.cursor, again.job.items) == ({"page": 2}, 2)


async def test_a_retried_dead_letter_starts_from_the_last_cursor(db: Database) -> None:
    """Shows R22."""
    claimed = await running(db, max_attempts=1)
    await db.run(db.store.leases.progress(claimed.lease, cursor="here", items={"a": 1}))
    await settle(db, claimed, Failed(ERROR))
    await db.run(db.store.job_commands.retry([claimed.job.id], BY))
    again = await claim_one(db)

    assert (again.job.cursor, again.job.items) == ("here", 1)
    assert await db.run(db.store.jobs.items(again.job.id)) == {"a": 1}


async def test_an_item_whose_key_is_known_is_ignored_and_counted_once(db: Database) -> None:
    """Shows R23."""
    claimed = await running(db)
    first = await db.run(db.store.leases.progress(claimed.lease, items={"a": 1, "b": {"x": None}}))
    second = await db.run(db.store.leases.progress(claimed.lease, items={"b": 9, "c": [3]}))

    assert (first.items, first.added) == (2, 2)
    assert (second.items, second.added) == (3, 1)
    assert (await get(db, claimed.job.id)).items == 3
    items = await db.run(db.store.jobs.items(claimed.job.id))
    assert items == {"a": 1, "b": {"x": None}, "c": [3]}


async def test_items_of_two_jobs_do_not_meet(db: Database) -> None:
    one, two = await running(db), await running(db)
    await db.run(db.store.leases.progress(one.lease, items={"a": 1}))
    answer = await db.run(db.store.leases.progress(two.lease, items={"a": 2}))

    assert answer.added == 1
    assert await db.run(db.store.jobs.items(one.job.id)) == {"a": 1}


async def test_reaching_the_target_completes_the_job(db: Database) -> None:
    """Shows R23."""
    claimed = await running(db, target=3, key="k")
    first = await db.run(db.store.leases.progress(claimed.lease, items={"a": 1, "b": 2}))
    assert not first.reached
    db.clock.advance(SECOND)
    op = db.store.leases.progress(claimed.lease, cursor={"page": 2}, items={"b": 0, "c": 3, "d": 4})
    assert await db.run(op) == ProgressResult(4, 2, reached=True, cancel_requested=False)

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.COMPLETED, "target_reached")
    assert (job.items, job.cursor, job.ended_at) == (4, {"page": 2}, db.clock.now)
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.token) == (AttemptOutcome.COMPLETED, claimed.lease.token)
    assert len(await db.run(db.store.jobs.items(job.id))) == 4


async def test_the_holder_whose_report_reached_the_target_has_no_lease_any_more(
    db: Database,
) -> None:
    """Shows R23."""
    claimed = await running(db, target=1)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))

    assert await db.run(db.store.leases.renew([claimed.lease])) == [RenewResult(RenewStatus.LOST)]
    assert (await settle(db, claimed, Succeeded("more"))).answer is SettleStatus.REPEATED
    assert (await get(db, claimed.job.id)).done_reason == "target_reached"


@pytest.mark.parametrize("reason", ["worker_done", "no_more_results"])
async def test_the_reason_for_completion_is_kept(db: Database, reason: str) -> None:
    """Shows R23."""
    claimed = await running(db, target=10)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))
    await settle(db, claimed, Succeeded({"found": 1}, reason=reason))
    job = await get(db, claimed.job.id)

    assert (job.done_reason, job.result, job.items) == (reason, {"found": 1}, 1)


async def test_progress_report_returns_the_cancel_request(db: Database) -> None:
    claimed = await running(db)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))

    assert (await db.run(db.store.leases.progress(claimed.lease, done=1))).cancel_requested


@pytest.mark.parametrize("why", ["over", "rescued", "another's", "queued"])
async def test_a_report_without_a_lease_is_refused_and_leaves_nothing(
    db: Database, why: str
) -> None:
    """Shows R4."""
    claimed = await running(db)
    lease = claimed.lease
    match why:
        case "over":
            db.clock.advance(lease.ttl)
        case "rescued":
            await lose(db, claimed)
        case "another's":
            lease = lease._replace(claimed_by=B)
        case _:
            lease = lease._replace(job_id=await enqueue(db))
    before = await get(db, claimed.job.id)

    with pytest.raises(LeaseLost, match="stop"):
        await db.run(db.store.leases.progress(lease, cursor=1, items={"a": 1}))
    assert await get(db, claimed.job.id) == before
    assert await count(db, "job_item") == 0


@pytest.mark.parametrize(
    "report",
    [
        {"cursor": "\0"},
        {"items": {"a": float("nan")}},
        {"items": {"a\0b": 1}},
        {"message": "\ud800"},
        {"cursor": "x" * 300_000},
    ],
    ids=["cursor", "item", "item's key", "message", "size"],
)
async def test_what_cannot_be_stored_is_refused_before_sql(
    db: Database, report: dict[str, object]
) -> None:
    claimed = await running(db)
    with pytest.raises(PayloadError):
        next(db.store.leases.progress(claimed.lease, **report))  # type: ignore[arg-type]  # as given
