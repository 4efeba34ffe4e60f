"""Rows that another session keeps locked, and limits that come between two statements."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from support.race_helpers import dead_letter, ended, held
from support.store import A, B, lanes
from tenure._model.audit import By
from tenure._model.job import NewJob
from tenure._model.lease import SettleStatus
from tenure._model.outcome import Released, Succeeded
from tenure._model.results import RetryStatus
from tenure._store.steps import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database, Party
    from tenure._model.lease import ClaimResult, SettleResult
    from tenure._store.steps import Op

OPERATOR = By("ada", reason="to see")


async def test_one_locked_row_holds_up_none_of_its_neighbours(db: Database) -> None:
    """A caller's guard keeps a row for long: that one is busy, the others are settled."""
    taken = await held(db, 5)
    handler = await db.caller("handler")
    worker = await db.party("worker", lock_timeout="200ms")

    async with handler.transaction() as tx:
        await tx.run(db.store.leases.guard(taken[2]))
        answers = await worker.run(
            db.store.settlement.settle([ended(x, Succeeded()) for x in taken])
        )
        result = [a.answer for a in answers]
        assert result.pop(2) is SettleStatus.BUSY
        assert result == [SettleStatus.SETTLED] * 4

    [answer] = await worker.run(db.store.settlement.settle([ended(taken[2], Succeeded())]))
    assert answer.answer is SettleStatus.SETTLED


async def test_a_completion_that_comes_after_a_release_is_refused_and_kept(db: Database) -> None:
    """The parent released while the child's completion was under way. Shows R5."""
    [lease] = await held(db)
    [released] = await db.run(db.store.settlement.settle([ended(lease, Released())]))
    assert released.answer is SettleStatus.SETTLED

    [late] = await db.run(db.store.settlement.settle([ended(lease, Succeeded({"paid": 1}))]))

    assert (late.answer, late.ending) == (SettleStatus.REFUSED, "released")
    [attempt] = await db.run(db.store.jobs.attempts(lease.job_id))
    assert attempt.refused_result["result"] == {"paid": 1}


async def test_leases_in_a_batch_differ_by_owner(db: Database) -> None:
    """A gateway settles for many: one worker's answer is not another's. Shows R5."""
    [lease] = await held(db)
    forged = type(lease)(lease.job_id, lease.token, B, lease.ttl)

    answers: Sequence[SettleResult] = await db.run(
        db.store.settlement.settle([ended(forged, Succeeded("b")), ended(lease, Succeeded("a"))])
    )

    assert [a.answer for a in answers] == [SettleStatus.REFUSED, SettleStatus.SETTLED]
    job = await db.run(db.store.jobs.get(lease.job_id))
    assert job is not None
    assert job.result == "a"


async def stopped_before_the_claim(op: Op[ClaimResult], party: Party) -> Query:
    """Perform an operation until it is about to claim; answers with that step."""
    step = next(op)
    while not (isinstance(step, Query) and step.name == "claim_limited"):
        step = op.send(await party._perform(step))
    return step


async def test_a_limit_set_between_the_lock_and_the_claim_leaves_no_room(db: Database) -> None:
    """Two claims with an old hint find no row to lock, and then a limit of one. Shows R9."""
    await db.run(db.store.jobs.enqueue([NewJob("t", "q") for _ in range(4)]))
    parties = [await db.party("first"), await db.party("second")]
    ops = [db.store.leases.claim(lanes("q"), count=1, worker=A, limited=True) for _ in parties]
    steps = [await stopped_before_the_claim(o, p) for o, p in zip(ops, parties, strict=True)]

    operator = await db.party("operator")
    await operator.run(db.store.queues.limit("q", 1, OPERATOR))

    taken = 0
    for party, op, step in zip(parties, ops, steps, strict=True):
        taken += len(await party._perform(step))
        op.close()
        await party.connection.execute("COMMIT")
    assert taken <= 1


async def test_a_dead_letter_does_not_take_a_key_that_an_ended_job_still_keeps(
    db: Database,
) -> None:
    """Shows R17."""
    old = await dead_letter(db, key="k")
    new = NewJob("work", key="k", key_for=timedelta(days=1))
    [young] = await db.run(db.store.jobs.enqueue([new]))
    claims = await db.run(db.store.leases.claim(lanes("default"), count=1, worker=A))
    await db.run(db.store.settlement.settle([ended(c.lease, Succeeded()) for c in claims.jobs]))

    [answer] = await db.run(db.store.job_commands.retry([old], OPERATOR))

    assert (answer.answer, answer.holder) == (RetryStatus.KEY_HELD, young.id)
