"""Steering jobs: hold and resume, cancel, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus, SettleResult, SettleStatus
from tenure._model.outcome import Cancelled, Failed, Released, Snoozed, Succeeded
from tenure._model.results import CancelStatus
from tests.conformance.acts import (
    BY,
    DAY,
    ERROR,
    claim,
    claim_one,
    dead_letter,
    enqueue,
    get,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome

UNKNOWN = JobId(999_999)


async def test_a_held_job_is_not_claimed_until_it_is_resumed(db: Database) -> None:
    """Shows R12."""
    job_id = await enqueue(db)
    assert await db.run(db.store.job_commands.hold([job_id], BY)) == [True]
    assert (await get(db, job_id)).held
    db.clock.advance(DAY)
    assert await claim(db) == []

    assert await db.run(db.store.job_commands.resume([job_id], BY)) == [True]
    assert not (await get(db, job_id)).held
    assert (await claim_one(db)).job.id == job_id


async def test_a_resumed_job_keeps_its_age_and_its_place(db: Database) -> None:
    """Shows R10."""
    held = await enqueue(db)
    db.clock.advance(SECOND)
    await db.run(db.store.job_commands.hold([held], BY))
    younger = await enqueue(db)
    urgent = await enqueue(db, priority=9)
    await db.run(db.store.job_commands.resume([held], BY))

    assert [c.job.id for c in await claim(db, count=9)] == [urgent, held, younger]


async def test_a_resumed_job_that_is_not_due_still_waits(db: Database) -> None:
    """Shows R11."""
    job_id = await enqueue(db, delay=60 * SECOND)
    await db.run(db.store.job_commands.hold([job_id], BY))
    await db.run(db.store.job_commands.resume([job_id], BY))
    assert await claim(db) == []

    db.clock.advance(60 * SECOND)
    assert (await claim_one(db)).job.id == job_id


async def test_only_queued_jobs_are_held_and_only_held_ones_resumed(db: Database) -> None:
    claimed = await running(db)
    dead = await dead_letter(db)
    queued = await enqueue(db)
    ids = [claimed.job.id, UNKNOWN, queued, dead]

    assert await db.run(db.store.job_commands.resume(ids, BY)) == [False, False, False, False]
    assert await db.run(db.store.job_commands.hold(ids, BY)) == [False, False, True, False]
    assert await db.run(db.store.job_commands.resume(ids, BY)) == [False, False, True, False]
    assert (await get(db, claimed.job.id)).state is State.RUNNING


async def test_a_queued_job_is_cancelled_at_once(db: Database) -> None:
    """Shows R12."""
    job_id = await enqueue(db, delay=DAY)
    assert await db.run(db.store.job_commands.cancel([job_id], BY)) == [CancelStatus.CANCELLED]

    job = await get(db, job_id)
    assert (job.state, job.done_reason, job.ended_at) == (
        State.CANCELLED,
        "requested",
        db.clock.now,
    )
    db.clock.advance(2 * DAY)
    assert await claim(db) == []


async def test_a_held_job_can_be_cancelled(db: Database) -> None:
    job_id = await enqueue(db, held=True)

    assert await db.run(db.store.job_commands.cancel([job_id], BY)) == [CancelStatus.CANCELLED]
    assert (await get(db, job_id)).state is State.CANCELLED


async def test_running_job_gets_a_cancel_request_and_keeps_its_holder(db: Database) -> None:
    claimed = await running(db)
    assert await db.run(db.store.job_commands.cancel([claimed.job.id], BY)) == [
        CancelStatus.REQUESTED
    ]

    job = await get(db, claimed.job.id)
    assert (job.state, job.cancel_requested, job.claimed_by) == (State.RUNNING, True, A)
    [renewal] = await db.run(db.store.leases.renew([claimed.lease]))
    assert renewal == RenewResult(RenewStatus.RENEWED, cancel_requested=True)


async def test_a_cancel_of_what_is_not_live_is_answered_so(db: Database) -> None:
    done = await running(db)
    await settle(db, done, Succeeded())
    dead = await dead_letter(db)
    ids = [UNKNOWN, done.job.id, dead, await enqueue(db)]

    assert await db.run(db.store.job_commands.cancel(ids, BY)) == [
        CancelStatus.NOT_LIVE,
        CancelStatus.NOT_LIVE,
        CancelStatus.NOT_LIVE,
        CancelStatus.CANCELLED,
    ]
    assert (await get(db, done.job.id)).state is State.COMPLETED
    assert (await get(db, dead)).state is State.FAILED


@pytest.mark.parametrize(
    "outcome",
    [Failed(ERROR), Failed(ERROR, retryable=False), Snoozed(SECOND), Released(), Cancelled()],
    ids=["failed", "failed for good", "snoozed", "released", "cancelled"],
)
async def test_job_with_a_cancel_request_ends_cancelled_and_is_never_requeued(
    db: Database, outcome: Outcome
) -> None:
    """Shows R12."""
    claimed = await running(db)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))

    assert (await settle(db, claimed, outcome)).state is State.CANCELLED
    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.CANCELLED, "requested")


async def test_a_completion_that_still_comes_is_accepted(db: Database) -> None:
    claimed = await running(db)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))

    answer = await settle(db, claimed, Succeeded("done"))
    assert answer == SettleResult(SettleStatus.SETTLED, State.COMPLETED)
    assert (await get(db, claimed.job.id)).result == "done"


async def test_a_revoked_job_is_cancelled_and_its_holder_refused(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    db.clock.advance(SECOND)
    assert await db.run(db.store.job_commands.revoke([claimed.job.id], BY)) == [True]

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.CANCELLED, "revoked")
    assert job.token > claimed.lease.token
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.token) == (AttemptOutcome.REVOKED, claimed.lease.token)
    assert attempt.ended_at == db.clock.now
    assert await db.run(db.store.leases.renew([claimed.lease])) == [RenewResult(RenewStatus.LOST)]
    assert (await settle(db, claimed, Succeeded())).answer is SettleStatus.REFUSED
    assert await get(db, job.id) == job


async def test_only_running_jobs_can_be_revoked(db: Database) -> None:
    queued = await enqueue(db, delay=DAY)
    dead = await dead_letter(db)
    claimed = await running(db)

    ids = [queued, claimed.job.id, UNKNOWN, dead]
    assert await db.run(db.store.job_commands.revoke(ids, BY)) == [False, True, False, False]
    assert (await get(db, queued)).state is State.QUEUED
