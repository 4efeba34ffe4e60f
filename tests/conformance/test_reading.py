"""Reading: a job wherever it is, its attempts, its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.store import SECOND, A, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tests.conformance.acts import (
    BY,
    ERROR,
    claim_one,
    dead_letter,
    ended,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database


async def test_an_id_that_nothing_has_is_answered_with_none(db: Database) -> None:
    assert await db.run(db.store.jobs.get(JobId(123_456))) is None


async def test_a_job_is_found_in_each_state_it_goes_through(db: Database) -> None:
    """Shows R12."""
    job_id = await enqueue(db, args={"n": 1})
    assert (await get(db, job_id)).state is State.QUEUED

    claimed = await claim_one(db)
    live = await get(db, job_id)
    assert live.state is State.RUNNING
    assert live == claimed.job

    db.clock.advance(SECOND)
    await settle(db, claimed, Succeeded({"ok": True}))
    archived = await get(db, job_id)
    assert archived.state is State.COMPLETED
    assert (archived.result, archived.args) == ({"ok": True}, {"n": 1})
    assert archived.ended_at == db.clock.now
    assert (archived.token, archived.claimed_by) == (claimed.lease.token, A)


async def test_a_dead_letter_is_found_with_why_it_failed(db: Database) -> None:
    """Shows R15."""
    job = await get(db, await dead_letter(db, args={"n": 2}, meta={"m": 3}))

    assert job.state is State.FAILED
    assert (job.done_reason, job.args, job.meta) == ("gave_up", {"n": 2}, {"m": 3})
    assert (job.attempt, job.claimed_by, job.ended_at) == (1, A, db.clock.now)


async def test_a_cancelled_job_is_found_in_the_archive(db: Database) -> None:
    """Shows R12."""
    job_id = await enqueue(db)
    await db.run(db.store.job_commands.cancel([job_id], BY))
    job = await get(db, job_id)

    assert job.state is State.CANCELLED
    assert (job.done_reason, job.attempt, job.claimed_by) == ("requested", 0, None)


async def test_every_attempt_leaves_a_row(db: Database) -> None:
    """Shows R16."""
    first = await running(db, max_attempts=5)
    due = first.job.run_at
    db.clock.advance(2 * SECOND)
    await db.run(db.store.leases.renew([first.lease]))
    db.clock.advance(SECOND)
    end = ended(first, Failed(ERROR), backoff=10 * SECOND, log="what it said")
    await db.run(db.store.settlement.settle([end]))
    db.clock.advance(10 * SECOND)
    second = await claim_one(db, worker=B)
    await lose(db, second)
    third = await claim_one(db)
    await settle(db, third, Succeeded())

    failed, lost, done = await db.run(db.store.jobs.attempts(first.job.id))
    assert [row.outcome for row in (failed, lost, done)] == [
        AttemptOutcome.FAILED,
        AttemptOutcome.LOST,
        AttemptOutcome.COMPLETED,
    ]
    assert [row.attempt for row in (failed, lost, done)] == [1, 2, 2]
    assert [row.token for row in (failed, lost, done)] == [
        claimed.lease.token for claimed in (first, second, third)
    ]
    assert (failed.claimed_by, lost.claimed_by) == (A, B)
    assert (failed.due_at, failed.started_at) == (due, due)
    assert (failed.ended_at, failed.renewals) == (due + 3 * SECOND, 1)
    assert (failed.queue, failed.task, failed.log) == ("q", "task", "what it said")
    assert (failed.error_type, failed.error_message) == ("ValueError", "no such thing")
    assert failed.error_signature == "ValueError: no such thing"
    assert (done.error_type, done.log, done.refused_result, done.late) == (None, None, None, False)


async def test_a_job_that_never_ran_has_no_attempts(db: Database) -> None:
    assert await db.run(db.store.jobs.attempts(await enqueue(db))) == []


async def test_items_are_read_by_key_a_stretch_at_a_time(db: Database) -> None:
    """Shows R23."""
    claimed = await running(db)
    items = {f"k{n}": {"n": n} for n in (3, 1, 2, 0)}
    await db.run(db.store.leases.progress(claimed.lease, items=items))

    first = await db.run(db.store.jobs.items(claimed.job.id, count=3))
    rest = await db.run(db.store.jobs.items(claimed.job.id, after="k2", count=3))
    assert list(first.items()) == [("k0", {"n": 0}), ("k1", {"n": 1}), ("k2", {"n": 2})]
    assert rest == {"k3": {"n": 3}}
