"""Claiming: how much, from where, what is left to others, and when there is nothing to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import BY, held
from support.store import SECOND
from tenure._model.job import State
from tenure._model.outcome import Succeeded
from tenure._rules.claiming import MAX_CLAIM
from tenure._runtime.lease_board import LeaseBoard
from tests.services.bench import SHARED_DEATH

if TYPE_CHECKING:
    from tenure._model.lease import RescuedLease
    from tests.services.bench import Bench


pytestmark = pytest.mark.usefixtures("rests")


async def state_of(bench: Bench) -> list[tuple[str, int]]:
    """The states that there are, with how many jobs are in each."""
    found = await bench.db.fetch(
        "SELECT state, count(*) AS n FROM tenure.job GROUP BY state ORDER BY state"
    )
    return [(each["state"], each["n"]) for each in found]


async def test_no_more_is_claimed_than_there_are_slots(bench: Bench) -> None:
    """Nothing has run yet: there is no rate to claim ahead by."""
    bench.task()
    dispatcher = bench.dispatcher(slots=3)
    claimer = bench.claimer(dispatcher)
    await bench.enqueue(10)
    done = [await claimer.tick() for _ in range(3)]

    assert done == [3, 0, 0]
    assert await state_of(bench) == [("queued", 7), ("running", 3)]
    assert len(bench.loop_way.started) == 3


async def test_a_slot_that_is_free_again_is_filled(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    claimer = bench.claimer(dispatcher)
    await bench.enqueue(2)
    await claimer.tick()
    await claimer.tick()
    claimer._nudged.clear()
    bench.loop_way.started[0].end(Succeeded())
    assert claimer._nudged.is_set()
    await claimer.tick()

    assert len(bench.loop_way.started) == 2


async def test_what_is_claimed_ahead_is_no_more_than_begins_within_a_moment(bench: Bench) -> None:
    """A hundred per second: ten may wait. They begin as slots become free."""
    bench.task()
    dispatcher = bench.dispatcher(slots=2)
    claimer = bench.claimer(dispatcher)
    dispatcher._rate.note(0, bench.boot.now)
    dispatcher._rate.note(200, bench.boot.advance(1))
    await bench.enqueue(50)
    await claimer.tick()

    assert await state_of(bench) == [("queued", 38), ("running", 12)]
    assert (len(bench.loop_way.started), dispatcher.running) == (2, 2)
    assert await claimer.tick() == 0
    bench.loop_way.started[0].end(Succeeded())
    assert len(bench.loop_way.started) == 3


async def test_a_second_claim_goes_beside_the_first_for_a_backlog(bench: Bench) -> None:
    """Both take jobs, no job twice; for the third the free slots are less than a whole claim."""
    bench.task()
    dispatcher = bench.dispatcher(slots=4 * MAX_CLAIM - 1)
    claimer = bench.claimer(dispatcher)
    second, third = bench.link("claimer 2"), bench.link("claimer 3")
    await bench.enqueue(4 * MAX_CLAIM)
    assert await claimer.claim_again(second) == 0, "no backlog is known yet"
    await claimer.tick()
    claimed = await asyncio.gather(
        claimer.tick(), claimer.claim_again(second), claimer.claim_again(third)
    )

    assert list(claimed) == [MAX_CLAIM, MAX_CLAIM, 0]
    assert (second.runs, third.runs) == (1, 0)
    assert len(bench.held_leases) == 3 * MAX_CLAIM
    assert await state_of(bench) == [("queued", MAX_CLAIM), ("running", 3 * MAX_CLAIM)]


async def test_requested_jobs_have_reserved_board_places(bench: Bench) -> None:
    """It counts against no slot, and claims continue; but all claimed jobs can be held."""
    bench.task()
    bench.held_leases._board = LeaseBoard(LeaseBoard.make(places=3), places=3)
    claimer = bench.claimer(bench.dispatcher(slots=2))
    await bench.enqueue(9)
    with claimer._asking(2, bench.link("claimer 2"), patient=True):
        assert (claimer.beside, claimer._capacity()) == (1, 1)
        await claimer.tick()
    assert (claimer.beside, len(bench.held_leases)) == (0, 1)


async def test_the_second_claim_is_left_out_where_there_is_no_backlog(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=2 * MAX_CLAIM)
    claimer = bench.claimer(dispatcher)
    link = bench.link("claimer 2")
    await bench.enqueue(MAX_CLAIM - 1)
    await claimer.tick()

    assert (await claimer.claim_again(link), link.runs) == (0, 0)


async def test_nothing_is_claimed_ahead_from_a_queue_with_a_limit(bench: Bench) -> None:
    """What waits here would count against it."""
    bench.task()
    dispatcher = bench.dispatcher(slots=2)
    claimer = bench.claimer(dispatcher)
    await bench.db.run(bench.db.store.queues.limit("default", 20, BY))
    await claimer.tick()
    dispatcher._rate.note(0, bench.boot.now)
    dispatcher._rate.note(200, bench.boot.advance(1))
    await bench.enqueue(50)
    await claimer.tick()

    assert await state_of(bench) == [("queued", 48), ("running", 2)]


async def test_no_job_waits_here_on_its_last_attempt(bench: Bench) -> None:
    """Lost, it would fail without having run; for a while nothing is claimed ahead."""
    bench.task()
    dispatcher = bench.dispatcher(slots=2)
    claimer = bench.claimer(dispatcher)
    dispatcher._rate.note(0, bench.boot.now)
    dispatcher._rate.note(200, bench.boot.advance(1))
    await bench.enqueue(20, max_attempts=1)
    await claimer.tick()
    await bench.settler.tick()

    assert await state_of(bench) == [("queued", 18), ("running", 2)]
    assert dispatcher.capacity(coming=0, limited=False) == 0
    [row] = await bench.db.fetch("SELECT max(attempt) AS n FROM tenure.job WHERE state = 'queued'")
    assert row["n"] == 0


async def test_no_more_is_claimed_than_the_board_has_places(bench: Bench) -> None:
    bench.task()
    fd = LeaseBoard.make(places=2)
    bench.held_leases._board = LeaseBoard(fd, places=2)
    claimer = bench.claimer(bench.dispatcher(slots=5))
    await bench.enqueue(5)
    await claimer.tick()

    assert (len(bench.held_leases), bench.held_leases.capacity) == (2, 0)
    assert await claimer.tick() == 0


async def test_no_sleep_between_suspects_that_come_one_by_one(
    bench: Bench, rests: list[float]
) -> None:
    """Each is claimed alone; the others and fresh work behind them are due all the while."""
    bench.task()
    await bench.start(bench.dispatcher(), 3)
    for running in bench.loop_way.started:
        running.end(SHARED_DEATH)
    await bench.settler.tick()
    await bench.enqueue(2)
    claimer = bench.claimer(bench.dispatcher(slots=20))
    assert [await claimer.tick() for _ in range(4)] == [1, 1, 1, 1]

    assert len(bench.held_leases) == 5
    assert len(rests) == 1, "after the last claim, which left nothing behind"


async def test_it_sleeps_until_the_next_job_is_due(bench: Bench, rests: list[float]) -> None:
    """At most a poll, which is a second and up to a fifth."""
    bench.task()
    claimer = bench.claimer(bench.dispatcher())
    await claimer.tick()
    await bench.enqueue(delay=0.25 * SECOND)
    await claimer.tick()
    await bench.enqueue(delay=-1 * SECOND)

    assert rests == [pytest.approx(1.2), pytest.approx(0.25)]


async def test_a_wakeup_during_a_claim_is_not_slept_over(
    bench: Bench, rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.task()
    claimer = bench.claimer(bench.dispatcher())
    link = bench.links[-1]
    original = link.run

    async def woken_meanwhile(op: Any) -> Any:
        answer = await original(op)
        claimer.wake("default")
        return answer

    monkeypatch.setattr(link, "run", woken_meanwhile)
    await claimer.tick()

    assert rests == []


async def test_wakeup_of_an_unserved_queue_is_ignored(bench: Bench) -> None:
    claimer = bench.claimer(bench.dispatcher(), "mail")
    claimer._woken = False
    claimer.wake("other")
    assert not claimer._woken

    claimer.wake("mail")
    assert claimer._woken


async def test_loser_of_recent_claim_races_backs_off(bench: Bench, rests: list[float]) -> None:
    """A thousand workers that wake for one job do not all ask at once."""
    claimer = bench.claimer(bench.dispatcher())
    for _ in range(4):
        claimer._woken = True
        await claimer.tick()

    # Before the third and the fourth claim, and every time the poll after it.
    assert rests == [pytest.approx(n) for n in (1.2, 1.2, 0.004, 1.2, 0.008, 1.2)]


async def test_a_stranger_is_given_back_uncharged_and_not_claimed_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.task("known")
    claimer = bench.claimer(bench.dispatcher())
    [strange, _] = await bench.enqueue(2, task="strange")
    await bench.enqueue(task="known")
    for _ in range(3):
        await claimer.tick()
        await bench.settler.tick()

    assert list(bench.settings.unknown_tasks) == ["strange"]
    job = await bench.get(strange)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert [each.held.job.task for each in bench.loop_way.started] == ["known"]
    [row] = await bench.db.fetch("SELECT count(*) AS n FROM tenure.attempt WHERE task = 'strange'")
    assert row["n"] == 2
    assert caplog.text.count("task 'strange' is not registered here") == 1


async def test_a_worker_of_every_queue_finds_new_ones(bench: Bench) -> None:
    """It asks which there are at most once a second."""
    bench.task()
    claimer = bench.claimer(bench.dispatcher(), "*")
    await bench.enqueue(queue="mail")
    await claimer.tick()
    await bench.enqueue(queue="later")
    await claimer.tick()
    assert len(bench.loop_way.started) == 1

    bench.advance(1)
    await claimer.tick()
    assert [each.held.job.queue for each in bench.loop_way.started] == ["mail", "later"]


async def test_a_paused_queue_gives_nothing_and_takes_back_what_has_not_started(
    bench: Bench,
) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    claimer = bench.claimer(dispatcher)
    await bench.start(dispatcher, 3)
    await bench.db.run(bench.db.store.queues.pause("default", BY))
    dispatcher._rate.note(0, bench.boot.now)
    dispatcher._rate.note(2000, bench.boot.advance(1))
    await claimer.tick()
    await bench.settler.tick()

    assert await state_of(bench) == [("queued", 2), ("running", 1)]


async def test_a_claim_counts_from_before_it_was_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.task()
    claimer = bench.claimer(bench.dispatcher())
    link = bench.links[-1]
    original = link.run

    async def slowly(op: Any) -> Any:
        answer = await original(op)
        bench.boot.advance(4)
        return answer

    monkeypatch.setattr(link, "run", slowly)
    await bench.enqueue()
    await claimer.tick()

    [held] = bench.held_leases
    assert held.sent_at == 1000.0


async def test_rescue_by_a_claim_of_a_limited_queue_is_reported(bench: Bench) -> None:
    """It ends what has run out there before it counts."""
    bench.task()
    [lost] = await held(bench.db, max_losses=1)
    await bench.db.fetch("UPDATE tenure.job SET worker_losses = 9, renewals = 0 RETURNING id")
    dispatcher = bench.dispatcher(slots=2)
    claimer = bench.claimer(dispatcher)
    events: list[RescuedLease] = []
    bench.events.rescued.append(events.extend)
    await bench.db.run(bench.db.store.queues.limit("default", 20, BY))
    bench.advance(30)
    await claimer.tick()

    assert [(job.job_id, job.state, job.reason) for job in events] == [
        (lost.job_id, State.FAILED, "poison")
    ]
    assert (events[0].task, events[0].attempt) == ("work", 1)
