"""Keyed enqueues against themselves and against the end of the job that holds the key."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import BY, ended, enqueued, held, job, state, undone, waiting
from support.store import SECOND
from tenure._model.job import EnqueueResult, State
from tenure._model.lease import RenewStatus, SettleResult, SettleStatus
from tenure._model.results import CancelStatus
from tenure._store.postgres.sessions import arun
from tenure._store.steps import Query
from tenure.errors import QueryFailed

if TYPE_CHECKING:
    from support.store import Database
    from tenure._store.steps import Rows, Step

KEYED = [job(key="k")]
DONE = SettleResult(SettleStatus.SETTLED, State.COMPLETED)


async def test_a_keyed_enqueue_that_waits_behind_another_answers_with_its_job(
    db: Database,
) -> None:
    """Two callers with one order make one job, and both learn its id. Shows R17."""
    await db.party("main")
    one, other = await db.caller("one"), await db.party("other")

    async with one.transaction() as tx:
        [first] = await tx.run(db.store.jobs.enqueue(KEYED))
        again = await waiting(db, other, db.store.jobs.enqueue(KEYED))

    assert first.created
    assert await again == [EnqueueResult(first.id, created=False)]
    assert len(await db.fetch("SELECT id FROM tenure.job")) == 1


async def test_a_keyed_enqueue_that_waits_behind_one_that_rolls_back_makes_the_job(
    db: Database,
) -> None:
    """No caller may get a job that never existed. Shows R17, R18."""
    await db.party("main")
    one, other = await db.caller("one"), await db.party("other")

    async with undone(one) as tx:
        [first] = await tx.run(db.store.jobs.enqueue(KEYED))
        again = await waiting(db, other, db.store.jobs.enqueue(KEYED))

    [second] = await again
    assert second.created
    assert await state(db, first.id) is None
    assert await state(db, second.id) is State.QUEUED


async def test_enqueues_of_the_same_keys_in_opposite_order_do_not_deadlock(
    db: Database,
) -> None:
    """Keys are locked in their own order, whatever the order of the call. Shows R17."""
    await db.party("main")
    gate, one, other = await db.caller("gate"), await db.party("one"), await db.party("other")
    forth = [job(key=key) for key in ("a", "m", "z")]

    async with undone(gate) as tx:
        await tx.run(db.store.jobs.enqueue([job(key="m")]))
        first = await waiting(db, one, db.store.jobs.enqueue(forth))
        second = await waiting(db, other, db.store.jobs.enqueue(forth[::-1]))

    made, found = await first, await second
    assert [answer.created for answer in made] == [True] * 3
    assert found == [EnqueueResult(answer.id, created=False) for answer in reversed(made)]


async def test_a_keyed_enqueue_that_waits_behind_the_jobs_end_makes_a_new_one(
    db: Database,
) -> None:
    """The key is free from the job's end on; the old id would answer for nothing. Shows R17."""
    [lease] = await held(db, key="k")
    worker, caller = await db.party("worker"), await db.party("caller")

    async with worker.transaction() as tx:
        assert await tx.run(db.store.settlement.settle([ended(lease)])) == [DONE]
        enqueue = await waiting(db, caller, db.store.jobs.enqueue(KEYED))

    [fresh] = await enqueue
    assert fresh.created
    assert fresh.id != lease.job_id
    assert await state(db, fresh.id) is State.QUEUED


async def test_a_keyed_enqueue_that_waits_behind_an_end_that_rolls_back_finds_the_job(
    db: Database,
) -> None:
    """The job runs on and has its key still; a second one would be its double. Shows R17."""
    [lease] = await held(db, key="k")
    worker, caller = await db.party("worker"), await db.party("caller")

    async with undone(worker) as tx:
        await tx.run(db.store.settlement.settle([ended(lease)]))
        enqueue = await waiting(db, caller, db.store.jobs.enqueue(KEYED))

    assert await enqueue == [EnqueueResult(lease.job_id, created=False)]


async def test_a_settle_whose_key_a_caller_holds_is_busy_alone(db: Database) -> None:
    """A caller's long transaction may delay the jobs it names, not their batch; and their rows
    stay free for renewals. Shows R17."""
    named = [(await held(db, key=key))[0] for key in ("k", "l")]
    [other] = await held(db, key="other")
    [plain] = await held(db)
    caller, settler = await db.caller("caller"), await db.party("settler")
    batch = [ended(lease) for lease in (*named, other, plain)]

    async with caller.transaction() as tx:
        found = await tx.run(db.store.jobs.enqueue([*KEYED, replace(KEYED[0], key="l")]))
        async with asyncio.timeout(3):
            answers = await settler.run(db.store.settlement.settle(batch))
        assert answers == [SettleResult(SettleStatus.BUSY)] * 2 + [DONE] * 2
        renewals = await settler.run(db.store.leases.renew(named))
        assert [each.answer for each in renewals] == [RenewStatus.RENEWED] * 2

    assert await settler.run(db.store.settlement.settle(batch[:2])) == [DONE] * 2
    assert found == [EnqueueResult(lease.job_id, created=False) for lease in named]


async def test_a_settle_is_not_refused_because_its_key_is_in_demand(db: Database) -> None:
    """However often others come first, the lease is held and its result counts. Shows R5."""
    [lease] = await held(db, key="k")
    settler = await db.party("settler")
    rival = await db.party("rival", lock_timeout="50ms")

    async def perform(step: Step) -> Rows:
        """Let a keyed enqueue be in flight at each settle, unless the settler has the key."""
        if not isinstance(step, Query) or step.name != "settle":
            return await settler._perform(step)
        async with rival.transaction() as tx:
            with suppress(QueryFailed):
                await tx.run(db.store.jobs.enqueue(KEYED))
            return await settler._perform(step)

    assert await arun(db.store.settlement.settle([ended(lease)]), perform) == [DONE]


async def test_a_rescue_leaves_the_job_whose_key_a_caller_holds_for_the_next_time(
    db: Database,
) -> None:
    """A sweep never waits for user code, and forgets nothing because of it. Shows R6."""
    [lease] = await held(db, key="k", max_losses=0)
    await db.run(db.store.leases.renew([lease]))
    db.clock.advance(31 * SECOND)
    caller, rescuer = await db.caller("caller"), await db.party("rescuer")

    async with caller.transaction() as tx:
        await tx.run(db.store.jobs.enqueue(KEYED))
        left = await rescuer.run(db.store.leases.rescue())
        assert (left.jobs, left.found) == ([], 1)

    [rescued] = (await rescuer.run(db.store.leases.rescue())).jobs
    assert (rescued.job_id, rescued.state) == (lease.job_id, State.FAILED)
    assert rescued.reason == "lost"


async def test_a_cancel_that_waits_behind_a_keyed_enqueue_frees_the_key_after_it(
    db: Database,
) -> None:
    """The caller was answered with a live job; only then may it end. Shows R17, R36."""
    [job_id] = await enqueued(db, key="k")
    caller, operator = await db.caller("caller"), await db.party("operator")

    async with caller.transaction() as tx:
        assert await tx.run(db.store.jobs.enqueue(KEYED)) == [EnqueueResult(job_id, created=False)]
        cancel = await waiting(db, operator, db.store.job_commands.cancel([job_id], BY))

    assert await cancel == [CancelStatus.CANCELLED]
    [fresh] = await db.run(db.store.jobs.enqueue(KEYED))
    assert fresh.created


async def test_a_keyed_enqueue_that_waits_behind_the_pruning_of_its_key_makes_the_job(
    db: Database,
) -> None:
    """The row it waited for is gone; the enqueue must not be lost with it. Shows R17, R18."""
    [lease] = await held(db, key="k")
    await db.run(db.store.settlement.settle([ended(lease)]))
    db.clock.advance(SECOND)
    upkeep, caller = await db.party("upkeep"), await db.party("caller")

    async with upkeep.transaction() as tx:
        assert await tx.run(db.store.maintenance._prune("prune_keys")) == 1
        enqueue = await waiting(db, caller, db.store.jobs.enqueue(KEYED))

    [fresh] = await enqueue
    assert fresh.created
    [row] = await db.fetch("SELECT job_id, expires_at FROM tenure.job_key")
    assert row == {"job_id": fresh.id, "expires_at": None}


@pytest.mark.parametrize("kept", [True, False], ids=["committed", "rolled_back"])
async def test_pruning_skips_the_key_that_is_being_taken_again(db: Database, kept: bool) -> None:
    """Pruned under its new holder, the key would let a double in. Shows R17."""
    [lease] = await held(db, key="k")
    await db.run(db.store.settlement.settle([ended(lease)]))
    db.clock.advance(SECOND)
    caller, upkeep = await db.caller("caller"), await db.party("upkeep")

    async with caller.transaction() if kept else undone(caller) as tx:
        await tx.run(db.store.jobs.enqueue(KEYED))
        assert await upkeep.run(db.store.maintenance._prune("prune_keys")) == 0

    assert await upkeep.run(db.store.maintenance._prune("prune_keys")) == (0 if kept else 1)
