"""Why a job is not running: one test for each answer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from support.store import SECOND, A
from tenure._model.explanation import ExplanationCode
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import State
from tenure._model.outcome import Succeeded
from tenure._model.stats import Count
from tenure._model.worker import NewWorker, WorkerState
from tenure._rules import explain as rules
from tests.conformance.acts import BY, DAY, begin, enqueue, get, running, settle

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.explanation import Explanation


async def why(db: Database, job_id: JobId) -> Explanation:
    facts = await db.run(db.store.stats.facts(job_id))
    return rules.nowhere(job_id) if facts is None else rules.explain(facts)


async def worker(db: Database, *queues: str, unknown: Any = (), worker_id: WorkerId = A) -> None:
    """A live worker of these queues."""
    await db.run(
        db.store.workers.register(NewWorker(worker_id, "me", "host", 1, "1.0", queues or ["q"], 10))
    )
    meta = {"unknown_tasks": list(unknown)}
    await db.run(
        db.store.workers.heartbeat(worker_id, state=WorkerState.ACTIVE, running=0, meta=meta)
    )


@pytest.mark.parametrize("number", [-1, 0, 99, 2**63])
async def test_a_number_that_no_job_has_is_unknown(db: Database, number: int) -> None:
    found = await why(db, JobId(number))
    assert found.code is ExplanationCode.UNKNOWN
    assert f"Job {number} does not exist" in found.sentence


async def test_a_job_that_has_ended_says_how(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, Succeeded())
    found = await why(db, claimed.job.id)
    assert (found.code, found.reason) == (ExplanationCode.ENDED, "worker_done")
    assert "completed (worker_done) at " in found.sentence


async def test_a_running_job_says_who_holds_it_and_until_when(db: Database) -> None:
    await worker(db)
    claimed = await running(db)
    found = await why(db, claimed.job.id)
    assert (found.code, found.by) == (ExplanationCode.RUNNING, "me on host")
    assert found.until == claimed.job.lease_expires_at
    assert (found.now, found.renewed_at) == (db.clock.now, claimed.job.claimed_at)
    assert found.renewals == 0
    await begin(db, claimed)
    assert (await why(db, claimed.job.id)).renewals == 1


async def test_a_lease_that_is_over_says_so_until_it_is_rescued(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl)
    found = await why(db, claimed.job.id)
    assert (found.code, found.by) == (ExplanationCode.LEASE_OVER, str(A))
    await db.run(db.store.leases.rescue())
    assert (await get(db, claimed.job.id)).state is State.QUEUED
    assert (await why(db, claimed.job.id)).code is ExplanationCode.NOT_SERVED


async def test_a_lease_that_is_over_and_locked_says_by_whom(db: Database) -> None:
    await db.party("main")
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl)
    locker = await db.caller("report")
    async with locker.transaction():
        await locker.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        found = await why(db, claimed.job.id)
    pid = locker.connection.info.backend_pid
    assert (found.code, found.by) == (ExplanationCode.LEASE_OVER, f"pid {pid} (report)")
    assert "has locked its row since" in found.sentence


async def test_a_due_job_that_is_locked_says_by_whom_and_since_when(db: Database) -> None:
    """Slots are free, and workers pass it over: it is not that it waits for one."""
    await db.party("main")
    await worker(db)
    job_id = await enqueue(db)
    locker = await db.caller("report")
    async with locker.transaction():
        await locker.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        assert (await why(db, job_id)).code is ExplanationCode.NEXT, "a claim locks it, too"
        db.clock.advance(3600 * SECOND)
        await worker(db)
        found = await why(db, job_id)
        [locked] = await db.run(db.store.inspection.locked(["q"], timedelta(0), count=3))
    pid = locker.connection.info.backend_pid
    assert (found.code, found.by) == (ExplanationCode.LOCKED, f"pid {pid} (report)")
    assert "has locked its row since" in found.sentence
    assert (locked.job_id, locked.pid, locked.application) == (job_id, pid, "report")
    assert (await why(db, job_id)).code is ExplanationCode.NEXT
    assert await db.run(db.store.inspection.locked(["q"], timedelta(0), count=3)) == []


async def test_a_held_job_says_who_holds_it_back_and_why(db: Database) -> None:
    await worker(db)
    job_id = await enqueue(db)
    await db.run(db.store.job_commands.hold([job_id], BY))
    found = await why(db, job_id)
    assert (found.code, found.by, found.reason) == (ExplanationCode.HELD, "ada", "because")


async def test_a_job_that_was_enqueued_held_says_so(db: Database) -> None:
    found = await why(db, await enqueue(db, held=True))
    assert (found.code, found.by) == (ExplanationCode.HELD, None)
    assert "since it was enqueued" in found.sentence


async def test_a_job_for_later_says_when_it_is_due(db: Database) -> None:
    job_id = await enqueue(db, delay=DAY)
    found = await why(db, job_id)
    assert (found.code, found.until) == (ExplanationCode.NOT_DUE, db.clock.now + DAY)


async def test_a_paused_installation_says_by_whom_and_until_when(db: Database) -> None:
    await worker(db)
    job_id = await enqueue(db)
    until = db.clock.now + DAY
    await db.run(db.store.queues.pause("*", BY, until=until))
    found = await why(db, job_id)
    assert (found.code, found.by, found.until) == (ExplanationCode.ALL_PAUSED, "ada", until)
    db.clock.advance(DAY)
    await worker(db)
    assert (await why(db, job_id)).code is ExplanationCode.NEXT


async def test_a_paused_queue_says_by_whom_and_why(db: Database) -> None:
    await worker(db)
    job_id = await enqueue(db)
    await db.run(db.store.queues.pause("q", BY))
    found = await why(db, job_id)
    assert (found.code, found.by, found.until) == (ExplanationCode.QUEUE_PAUSED, "ada", None)
    assert found.sentence == "Queue q is paused by ada: because."


@pytest.mark.parametrize("queue", ["q", "*"])
async def test_a_limit_that_is_reached_says_how_many_run(db: Database, queue: str) -> None:
    await worker(db)
    await db.run(db.store.queues.limit(queue, 2, BY))
    for _ in range(2):
        await running(db)
    found = await why(db, await enqueue(db))
    assert (found.code, found.count) == (ExplanationCode.LIMIT_REACHED, Count(2))
    assert "2 of 2 jobs are running" in found.sentence


@pytest.mark.parametrize("gone", ["never", "stale", "offline", "draining", "elsewhere"])
async def test_a_queue_that_no_live_worker_serves_says_so(db: Database, gone: str) -> None:
    if gone != "never":
        await worker(db, "other" if gone == "elsewhere" else "q")
    if gone == "stale":
        db.clock.advance(60 * SECOND)
    if gone in ("offline", "draining"):
        await db.run(db.store.workers.heartbeat(A, state=WorkerState(gone), running=0))
    found = await why(db, await enqueue(db))
    assert found.code is ExplanationCode.NOT_SERVED
    assert "-q q" in found.sentence


async def test_a_task_that_no_live_worker_knows_says_so(db: Database) -> None:
    await worker(db, unknown=["new"])
    job_id = await enqueue(db, "new")
    found = await why(db, job_id)
    assert found.code is ExplanationCode.TASK_UNKNOWN
    assert "knows task new" in found.sentence
    await worker(db, "*", worker_id=WorkerId(UUID(int=9)))
    assert (await why(db, job_id)).code is ExplanationCode.NEXT


async def test_a_job_behind_others_says_behind_how_many(db: Database) -> None:
    """Those of higher priority, those given back, those that came before it; no other jobs."""
    await worker(db)
    for priority in (0, 5, 9):
        await enqueue(db, priority=priority)
    await enqueue(db, queue="other")
    await enqueue(db, delay=DAY, priority=9)
    await enqueue(db, held=True)
    job_id = await enqueue(db)
    await enqueue(db)
    returned = await enqueue(db, held=True)
    await db.run(db.store.job_commands.resume([returned], BY))

    found = await why(db, job_id)
    assert (found.code, found.count) == (ExplanationCode.BEHIND, Count(3))
    found = await why(db, returned)
    assert (found.code, found.count) == (ExplanationCode.BEHIND, Count(1))


async def test_the_first_of_its_queue_waits_for_a_free_slot(db: Database) -> None:
    await worker(db)
    first, _ = await enqueue(db), await enqueue(db)
    found = await why(db, first)
    assert found.code is ExplanationCode.NEXT
    assert "free slot" in found.sentence
