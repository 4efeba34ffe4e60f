"""An edit against a claim, a settle, a retry and another edit: the second waits for the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.race_helpers import (
    BROKEN,
    BY,
    claim,
    dead_letter,
    ended,
    enqueued,
    held,
    leases,
    state,
    undone,
    waiting,
)
from tenure._model.edit import JobChanges
from tenure._model.job import State
from tenure._model.results import EditStatus, RetryResult, RetryStatus
from tenure._rules.sealing import NOT_SEALING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._store.steps import Op


def edit(db: Database, job_id: JobId, **changes: Any) -> Op[Sequence[EditStatus]]:
    return db.store.job_edits.edit([job_id], JobChanges(**changes), BY, sealing=NOT_SEALING)


def retry(db: Database, job_id: JobId, **args: Any) -> Op[Sequence[RetryResult]]:
    return db.store.job_edits.retry([job_id], args, BY, sealing=NOT_SEALING)


async def args_of(db: Database, job_id: JobId) -> Any:
    job = await db.run(db.store.jobs.get(job_id))
    assert job is not None
    return job.args


async def test_an_edit_behind_a_claim_leaves_the_running_job_alone(db: Database) -> None:
    """The worker has read the arguments already."""
    [job_id] = await enqueued(db, args={"n": 1})
    worker, operator = await db.party("worker"), await db.party("operator")

    async with worker.transaction() as tx:
        assert leases(await tx.run(claim(db.store)))
        change = await waiting(db, operator, edit(db, job_id, args={"n": 2}))

    assert await change == [EditStatus.RUNNING]
    assert await args_of(db, job_id) == {"n": 1}
    assert await db.run(db.store.audit.list(f"job:{job_id}")) == []


async def test_an_edit_behind_a_claim_that_is_undone_is_done(db: Database) -> None:
    [job_id] = await enqueued(db, args={"n": 1})
    worker, operator = await db.party("worker"), await db.party("operator")

    async with undone(worker) as tx:
        assert leases(await tx.run(claim(db.store)))
        change = await waiting(db, operator, edit(db, job_id, args={"n": 2}))

    assert await change == [EditStatus.EDITED]
    [claimed] = (await db.run(claim(db.store))).jobs
    assert claimed.job.args == {"n": 2}


async def test_a_claim_never_gets_half_an_edit(db: Database) -> None:
    """It skips the job that is being edited, and finds it with all new values after that."""
    [job_id] = await enqueued(db, args={"n": 1})
    operator, worker = await db.party("operator"), await db.party("worker")

    async with operator.transaction() as tx:
        assert await tx.run(edit(db, job_id, args={"n": 2}, max_attempts=9)) == [EditStatus.EDITED]
        assert leases(await worker.run(claim(db.store))) == []

    [claimed] = (await worker.run(claim(db.store))).jobs
    assert (claimed.job.args, claimed.job.max_attempts) == ({"n": 2}, 9)


async def test_an_edit_behind_the_end_of_an_attempt_edits_the_dead_letter(db: Database) -> None:
    """The row that it waited for is gone; the job is a dead letter now."""
    [job_id] = await enqueued(db, args={"n": 1}, max_attempts=1)
    worker, operator = await db.party("worker"), await db.party("operator")

    async with worker.transaction() as tx:
        [lease] = leases(await tx.run(claim(db.store)))
        change = await waiting(db, operator, edit(db, job_id, args={"n": 2}))
        await tx.run(db.store.settlement.settle([ended(lease, BROKEN)]))

    assert await change == [EditStatus.EDITED]
    assert (await state(db, job_id), await args_of(db, job_id)) == (State.FAILED, {"n": 2})


async def test_an_edit_behind_a_retry_edits_the_queued_job(db: Database) -> None:
    dead = await dead_letter(db, args={"n": 1})
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        assert await tx.run(retry(db, dead, n=2)) == [RetryResult(RetryStatus.RETRIED)]
        change = await waiting(db, other, edit(db, dead, args={"n": 3}))

    assert await change == [EditStatus.EDITED]
    assert (await state(db, dead), await args_of(db, dead)) == (State.QUEUED, {"n": 3})


async def test_of_two_retries_with_arguments_one_brings_the_job_back(db: Database) -> None:
    dead = await dead_letter(db, args={"n": 1})
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(retry(db, dead, n=2))
        again = await waiting(db, other, retry(db, dead, n=3))

    assert await again == [RetryResult(RetryStatus.NOT_FAILED)]
    assert await args_of(db, dead) == {"n": 2}


async def test_two_edits_at_once_are_both_in_the_audit_in_order(db: Database) -> None:
    [job_id] = await enqueued(db, args={"n": 1})
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(edit(db, job_id, args={"n": 2}))
        change = await waiting(db, other, edit(db, job_id, args={"n": 3}))

    assert await change == [EditStatus.EDITED]
    rows = await db.run(db.store.audit.list(f"job:{job_id}"))
    assert [(row.before, row.after) for row in rows] == [
        ({"args": {"n": 2}}, {"args": {"n": 3}}),
        ({"args": {"n": 1}}, {"args": {"n": 2}}),
    ]


async def test_an_edit_behind_a_cancel_reports_the_end(db: Database) -> None:
    [job_id] = await enqueued(db)
    one, other = await db.party("one"), await db.party("other")

    async with one.transaction() as tx:
        await tx.run(db.store.job_commands.cancel([job_id], BY))
        change = await waiting(db, other, edit(db, job_id, priority=9))

    assert await change == [EditStatus.ENDED]


async def test_an_edit_of_a_running_job_does_not_wait(db: Database) -> None:
    [lease] = await held(db)
    assert await db.run(edit(db, lease.job_id, priority=9)) == [EditStatus.RUNNING]
