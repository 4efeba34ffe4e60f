"""A job whose next loss must be known begins only after the store knows that it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from support.store import A, lanes
from tenure._model.job import State
from tenure.errors import Unreachable
from tests.services.bench import DIED

if TYPE_CHECKING:
    from tenure._runtime.confirmer import Confirmer
    from tests.services.bench import Bench


async def reported(confirmer: Confirmer) -> None:
    """One pass, and a turn of the loop for what its answers set off."""
    await confirmer.tick()
    await asyncio.sleep(0)


async def renewals(bench: Bench) -> list[int]:
    rows = await bench.db.fetch("SELECT renewals FROM tenure.job ORDER BY id")
    return [row["renewals"] for row in rows]


async def test_a_fresh_job_begins_without_a_statement(bench: Bench) -> None:
    bench.task()
    await bench.start(bench.dispatcher(confirmer=bench.confirmer()))

    assert len(bench.loop_way.started) == 1
    assert await renewals(bench) == [-1]


async def test_jobs_that_fail_on_loss_are_confirmed_together_before_they_begin(
    bench: Bench,
) -> None:
    bench.task(on_loss="fail")
    confirmer = bench.confirmer()
    await bench.start(bench.dispatcher(confirmer=confirmer), 3)
    assert bench.loop_way.started == []
    assert await renewals(bench) == [-1, -1, -1]

    await reported(confirmer)
    assert len(bench.loop_way.started) == 3
    assert await renewals(bench) == [0, 0, 0]
    assert bench.links[-1].runs == 1


async def test_a_job_enqueued_by_name_learns_that_it_fails_on_loss(bench: Bench) -> None:
    """An enqueue by name knows no task: the row says so from the first begin on."""
    bench.task(on_loss="fail")
    confirmer = bench.confirmer()
    [held] = await bench.start(bench.dispatcher(confirmer=confirmer), max_losses=3)
    await reported(confirmer)
    bench.loop_way.started[0].end(DIED)
    await bench.settler.tick()

    job = await bench.get(held.job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "lost")


async def test_a_job_whose_lease_is_over_does_not_begin(bench: Bench) -> None:
    bench.task(on_loss="fail")
    confirmer = bench.confirmer()
    [held] = await bench.start(bench.dispatcher(confirmer=confirmer))
    bench.db.clock.advance(held.lease.ttl)
    await bench.db.run(bench.db.store.leases.rescue())
    await reported(confirmer)

    assert bench.loop_way.started == []
    assert (await bench.get(held.job.id)).state is State.QUEUED


async def test_without_an_answer_it_waits_until_the_lease_cannot_be_trusted(bench: Bench) -> None:
    """Then it is given back: it never began, so it fails of nothing."""
    bench.task(on_loss="fail")
    confirmer = bench.confirmer()
    [held] = await bench.start(bench.dispatcher(confirmer=confirmer))
    bench.links[-1].cut = True
    with pytest.raises(Unreachable):
        await confirmer.tick()
    assert bench.loop_way.started == []

    bench.boot.advance(30)
    await reported(confirmer)
    await bench.settler.tick()
    job = await bench.get(held.job.id)
    assert (job.state, job.attempt, job.deaths) == (State.QUEUED, 0, 0)


async def test_a_job_that_was_lost_before_is_confirmed(bench: Bench) -> None:
    bench.task()
    confirmer = bench.confirmer()
    dispatcher = bench.dispatcher(confirmer=confirmer)
    [lost] = await bench.enqueue()
    await bench.db.fetch("UPDATE tenure.job SET deaths = 1 RETURNING id")
    await bench.enqueue()
    op = bench.db.store.leases.claim(lanes("default"), count=2, worker=A)
    dispatcher.take(await bench.db.run(op), bench.boot.now)

    assert lost not in [each.held.job.id for each in bench.loop_way.started]
    await reported(confirmer)
    assert lost in [each.held.job.id for each in bench.loop_way.started]
