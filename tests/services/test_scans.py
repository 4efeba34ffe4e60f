"""Scans: jobs below the floor are found while claims continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.job import NewJob, State
from tenure._model.lease import ClaimResult
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from tests.services.bench import Bench

pytestmark = pytest.mark.usefixtures("rests")


async def test_a_scan_finds_what_lies_below_the_floor(bench: Bench) -> None:
    """A transaction that committed long after its job was due."""
    bench.task()
    claimer = bench.claimer(bench.dispatcher())
    link = bench.link("claimer 2")
    claimer._scan_at = bench.boot.now + 1
    await bench.enqueue(2)
    await claimer.tick()
    late = await bench.db.caller("late")
    async with late.transaction() as tx:
        await tx.run(bench.db.store.jobs.enqueue([NewJob("work")]))
        bench.db.clock.advance(60 * SECOND)
        await bench.enqueue()
        await claimer.tick()
        await claimer.tick()
    await claimer.tick()
    assert (await claimer.scan(link), link.runs) == (0, 0), "it is not time yet"
    assert len(bench.loop_way.started) == 3

    bench.boot.advance(1)
    assert await claimer.scan(link) == 1
    assert len(bench.loop_way.started) == 4
    assert claimer.until_scan > 0.1


async def test_failed_scan_is_not_repeated_at_once(bench: Bench) -> None:
    """It may have held a limited queue's row until its time was up."""
    bench.task()
    claimer = bench.claimer(bench.dispatcher())
    link = bench.link("claimer 2")
    await bench.enqueue()
    await claimer.tick()
    claimer._scan_at, link.cut = bench.boot.now, True
    with pytest.raises(Unreachable):
        await claimer.scan(link)
    assert claimer.until_scan > 0.1


async def test_what_a_scan_finds_when_claims_have_filled_the_slots_is_given_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims do not wait for a scan, and nothing waits here for a slot that is long in coming."""
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    claimer = bench.claimer(dispatcher)
    link = bench.link("claimer 2")
    [late] = await bench.enqueue()
    bench.db.clock.advance(60 * SECOND)
    [fresh] = await bench.enqueue()
    claimer._lanes.record_claim(
        claimer._lanes.next_lanes(),
        ClaimResult([], 0, False, frozenset(), bench.db.clock.now),
        wanted=1,
    )
    claimer._scan_at = bench.boot.now
    original = link.run

    async def claimed_meanwhile(op: Any) -> Any:
        await claimer.tick()
        return await original(op)

    monkeypatch.setattr(link, "run", claimed_meanwhile)
    await claimer.scan(link)
    await bench.settler.tick()

    assert (await bench.get(fresh)).state is State.RUNNING
    job = await bench.get(late)
    assert (job.state, job.attempt) == (State.QUEUED, 0)


async def test_a_scan_is_a_share_of_all_that_look(bench: Bench) -> None:
    """Fifty processes scan no more often than one."""
    bench.task()
    bench.settings.peer_count = 50
    claimer = bench.claimer(bench.dispatcher())
    claimer._scan_at = bench.boot.now
    await claimer.scan(bench.link("claimer 2"))

    assert claimer.until_scan >= 0.2
