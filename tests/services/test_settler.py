"""Settling what has ended: together, in any trouble, and nothing forgotten."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import BY, attempts, ended
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import NewJob, State
from tenure._model.outcome import SUCCEEDED, Failed, Released, SettleRequest, Succeeded
from tenure._rules import lifecycle
from tenure._runtime.held_leases import StopReason
from tenure._runtime.settler import Settler
from tenure._store.postgres.sessions import AsyncSession
from tenure.errors import Error, Unreachable
from tests.services.bench import DIED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from support.store import Party
    from tenure._runtime.held_leases import HeldLease
    from tests.services.bench import Bench


@pytest.fixture
async def held(bench: Bench) -> Sequence[HeldLease]:
    """Three jobs that run."""
    bench.task()
    return await bench.start(bench.dispatcher(), 3)


def hurried(party: Party) -> Any:
    """A connection with a short patience for locks, in a link's place."""
    return party


@asynccontextmanager
async def locked(bench: Bench, held: HeldLease) -> AsyncIterator[None]:
    """While an operator's transaction has the row of its job."""
    operator = await bench.db.caller("operator")
    async with operator.transaction():
        await operator.connection.execute(
            "SELECT FROM tenure.job WHERE id = %s FOR UPDATE", [held.job.id]
        )
        yield


async def until(met: Callable[[], bool]) -> None:
    """Return once this is so."""
    while True:
        if met():
            return
        await asyncio.sleep(0.01)


async def test_one_alone_is_settled_at_once(bench: Bench, held: Sequence[HeldLease]) -> None:
    bench.loop_way.started[0].end(Succeeded({"n": 1}), "said")
    assert await bench.settler.tick() == 1

    job = await bench.get(held[0].job.id)
    assert (job.state, job.result) == (State.COMPLETED, {"n": 1})
    [attempt] = await attempts(bench.db, job.id)
    assert attempt.log == "said"
    assert list(bench.held_leases) == list(held[1:])


async def test_jobs_without_a_result_share_one_statement_and_one_event(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """One whose lease is lost is refused on its own, and does not hold up the others."""
    succeeded: list[Sequence[HeldLease]] = []
    bench.events.succeeded.append(succeeded.append)
    await bench.db.fetch(
        f"UPDATE tenure.job SET token = token + 1 WHERE id = {held[1].job.id} RETURNING id"
    )
    for handler in bench.loop_way.started:
        handler.end(SUCCEEDED)
    await bench.settler.tick()
    await asyncio.wait_for(bench.settler.emptied(), 5)

    assert succeeded == [[held[0], held[2]]]
    assert (await bench.get(held[0].job.id)).state is State.COMPLETED
    assert (await bench.get(held[1].job.id)).state is State.RUNNING
    assert list(bench.held_leases) == []


async def test_completions_are_kept_until_the_store_has_answered(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    bench.loop_way.started[0].end(SUCCEEDED)
    bench.links[0].cut = True
    with pytest.raises(Unreachable):
        await bench.settler.tick()
    assert held[0] in list(bench.held_leases)

    bench.links[0].cut = False
    await bench.settler.tick()
    assert (await bench.get(held[0].job.id)).state is State.COMPLETED
    assert held[0] not in list(bench.held_leases)


async def test_many_go_together(bench: Bench, held: Sequence[HeldLease]) -> None:
    """Each by its own word, in as few statements as for one."""
    one, two, three = bench.loop_way.started
    one.end(Succeeded())
    two.end(Failed(Error("ValueError", "no")))
    three.end(Released())
    assert await bench.settler.tick() == 3

    states = [(await bench.get(each.job.id)).state for each in held]
    assert states == [State.COMPLETED, State.QUEUED, State.QUEUED]
    assert (len(bench.held_leases), bench.links[0].runs) == (0, 1)


async def test_a_batch_has_an_end(
    bench: Bench, held: Sequence[HeldLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._runtime.settler._BATCH", 2)
    for running in bench.loop_way.started:
        running.end(Succeeded())

    assert [await bench.settler.tick() for _ in range(3)] == [2, 1, 0]


async def test_locked_rows_are_retried_after_the_others(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    party = await bench.db.party("settler", lock_timeout="50ms")
    settler = Settler(bench.db.store, hurried(party), bench.held_leases, events=bench.events)
    async with locked(bench, held[0]):
        for each in held:
            settler.put(each, ended(each.lease))
        await settler.tick()
        assert list(bench.held_leases) == [held[0]]
        bench.boot.advance(1)
        await settler.tick()
        assert list(bench.held_leases) == [held[0]]
    bench.boot.advance(1)
    await settler.tick()

    assert (await bench.get(held[0].job.id)).state is State.COMPLETED
    assert len(bench.held_leases) == 0


async def test_a_lost_lease_whose_row_is_locked_keeps_no_other_waiting(
    bench: Bench, held: Sequence[HeldLease], caplog: pytest.LogCaptureFixture
) -> None:
    """The process died under it; its row is asked for again behind the others."""
    party = await bench.db.party("settler", lock_timeout="50ms")
    settler = Settler(bench.db.store, hurried(party), bench.held_leases, events=bench.events)
    async with locked(bench, held[0]):
        for each in held[:2]:
            lost = lifecycle.settle(DIED, attempt=1, limit=3, backoff=timedelta(0))
            settler.put(each, SettleRequest(each.lease, lost))
        await settler.tick()
        await settler.tick()
        assert list(bench.held_leases) == [held[0], held[2]]
    bench.boot.advance(1)
    await settler.tick()

    assert list(bench.held_leases) == [held[2]]
    losses = [(await bench.get(each.job.id)).losses for each in held]
    assert losses == [1, 1, 0]
    assert "Traceback" not in caplog.text


async def test_refused_result_is_reported_and_kept_as_evidence(
    bench: Bench, held: Sequence[HeldLease], caplog: pytest.LogCaptureFixture
) -> None:
    """Its lease was revoked meanwhile: the log must say so. Shows R5."""
    await bench.db.run(bench.db.store.job_commands.revoke([held[0].job.id], BY))
    bench.loop_way.started[0].end(Succeeded("late"))
    with caplog.at_level(logging.WARNING, "tenure"):
        await bench.settler.tick()

    assert "refused, its lease had already ended as revoked" in caplog.text
    assert held[0] not in list(bench.held_leases)
    [attempt] = await attempts(bench.db, held[0].job.id)
    assert attempt.refused_result["result"] == "late"


async def test_nothing_is_forgotten_while_the_database_is_away(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Its lease stays held, and so renewed, until it is settled."""
    link = bench.links[0]
    link.cut = True
    for running in bench.loop_way.started:
        running.end(Succeeded())
    for _ in range(2):
        with pytest.raises(Unreachable):
            await bench.settler.tick()
    assert len(bench.held_leases) == 3

    link.cut = False
    await bench.settler.tick()
    assert {(await bench.get(each.job.id)).state for each in held} == {State.COMPLETED}


async def test_a_settle_whose_answer_was_cut_off_is_sent_again_without_harm(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Shows R5."""
    bench.loop_way.started[0].end(Succeeded(1))
    await bench.db.run(bench.db.store.settlement.settle([ended(held[0].lease, Succeeded(1))]))
    await bench.settler.tick()

    [attempt] = await attempts(bench.db, held[0].job.id)
    assert (attempt.outcome, attempt.settle_repeats, attempt.refused_result) == (
        AttemptOutcome.COMPLETED,
        1,
        None,
    )
    assert held[0] not in list(bench.held_leases)


async def queued(bench: Bench) -> int:
    """How many jobs of the task `next` there are."""
    [found] = await bench.db.fetch("SELECT count(*) AS n FROM tenure.job WHERE task = 'next'")
    count: int = found["n"]
    return count


async def test_what_follows_is_enqueued_with_the_completion(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Both, in one transaction."""
    bench.settler.put(held[0], ended(held[0].lease), follow_ups=[NewJob("next"), NewJob("next")])
    await bench.settler.tick()

    assert (await bench.get(held[0].job.id)).state is State.COMPLETED
    assert await queued(bench) == 2


async def test_what_would_follow_from_a_lost_lease_is_not_enqueued(
    bench: Bench, held: Sequence[HeldLease], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither; and the refusal is told like any other. Shows R5."""
    await bench.db.run(bench.db.store.job_commands.revoke([held[0].job.id], BY))
    bench.settler.put(held[0], ended(held[0].lease, Succeeded(1)), follow_ups=[NewJob("next")])
    await bench.settler.tick()

    assert await queued(bench) == 0
    [attempt] = await attempts(bench.db, held[0].job.id)
    assert attempt.refused_result["result"] == 1
    assert held[0] not in list(bench.held_leases)
    assert "refused" in caplog.text


async def test_what_follows_is_enqueued_once_though_sent_twice(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """The answer to the first was cut off after its commit."""
    for _ in range(2):
        bench.settler.put(held[0], ended(held[0].lease), follow_ups=[NewJob("next")])
        await bench.settler.tick()

    assert await queued(bench) == 1


async def test_one_whose_key_is_locked_holds_up_no_other_that_has_follow_ups(bench: Bench) -> None:
    """A caller's transaction keeps the key's row; its neighbours' ends do not wait for that."""
    bench.task()
    dispatcher = bench.dispatcher()
    [keyed] = await bench.start(dispatcher, key="k")
    [plain] = await bench.start(dispatcher)
    for each in (keyed, plain):
        bench.settler.put(each, ended(each.lease), follow_ups=[NewJob("next")])
    operator = await bench.db.caller("operator")
    async with asyncio.timeout(4), operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.job_key FOR UPDATE")
        for _ in range(3):
            await bench.settler.tick()
        assert list(bench.held_leases) == [keyed]
    bench.boot.advance(1)
    await bench.settler.tick()

    assert (len(bench.held_leases), await queued(bench)) == (0, 2)


@pytest.mark.parametrize("follow_ups", [[], [NewJob("next")]])
async def test_a_key_that_a_caller_keeps_locked_holds_up_neither_what_ends_later_nor_its_lease(
    bench: Bench, follow_ups: list[NewJob]
) -> None:
    """With the patience for locks that a worker has, far less than it is used up. Shows R17."""
    bench.task()
    dispatcher = bench.dispatcher()
    [keyed] = await bench.start(dispatcher, key="k")
    later = await bench.start(dispatcher, 3)
    caller = await bench.db.caller("caller")
    running = asyncio.create_task(bench.settler.run())
    async with asyncio.timeout(4), caller.transaction() as tx:
        await tx.run(bench.db.store.jobs.enqueue([NewJob("work", key="k")]))
        bench.settler.put(keyed, ended(keyed.lease), follow_ups=follow_ups)
        await until(lambda: bench.settler._items[0].tries > 0)
        for each in later:
            bench.settler.put(each, ended(each.lease))
        await until(lambda: list(bench.held_leases) == [keyed])
        renewer = bench.renewer()
        bench.advance(10)
        while not renewer.renewed:
            await renewer.tick()
    bench.boot.advance(1)
    async with asyncio.timeout(4):
        await bench.settler.emptied()
    bench.settler.stop()
    await running

    job = await bench.get(keyed.job.id)
    assert (job.state, job.losses) == (State.COMPLETED, 0)
    assert await queued(bench) == len(follow_ups)


async def test_a_completion_that_the_handler_committed_itself_is_believed(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Shows R20."""
    caller = await bench.db.caller("handler")
    async with caller.transaction() as tx:
        await tx.run(
            bench.db.store.settlement.settle_within(held[0].lease, ended(held[0].lease).settlement)
        )
    bench.settler.put(held[0], ended(held[0].lease), completed_in_caller_transaction=True)
    await bench.settler.tick()

    [attempt] = await attempts(bench.db, held[0].job.id)
    assert (attempt.outcome, attempt.settle_repeats) == (AttemptOutcome.COMPLETED, 0)
    assert held[0] not in list(bench.held_leases)


async def test_a_completion_that_was_never_committed_fails_the_attempt(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Shows R20."""
    bench.settler.put(held[0], ended(held[0].lease), completed_in_caller_transaction=True)
    await bench.settler.tick()

    job = await bench.get(held[0].job.id)
    [attempt] = await attempts(bench.db, job.id)
    assert (job.state, attempt.error_type) == (State.QUEUED, "NotCommitted")


async def test_a_handed_over_transaction_that_is_still_open_is_waited_for(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """The handler returned before its COMMIT or ROLLBACK, which another program will send: until
    then the lease is kept. Shows R20."""
    party = await bench.db.party("settler", lock_timeout="50ms")
    settler = Settler(bench.db.store, hurried(party), bench.held_leases, events=bench.events)
    caller = await bench.db.caller("handler")
    await caller.connection.execute("BEGIN")
    op = bench.db.store.settlement.settle_within(held[0].lease, ended(held[0].lease).settlement)
    await AsyncSession(caller.connection, own=False).run(op)
    settler.put(held[0], ended(held[0].lease), completed_in_caller_transaction=True)
    await settler.tick()
    assert held[0] in list(bench.held_leases)

    await caller.connection.execute("ROLLBACK")
    bench.boot.advance(1)
    await settler.tick()
    [attempt] = await attempts(bench.db, held[0].job.id)
    assert attempt.error_type == "NotCommitted"


async def test_a_handler_whose_process_died_is_a_loss(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """Known at once, long before the lease is over. Shows R7."""
    bench.loop_way.started[0].end(DIED)
    await bench.settler.tick()

    job = await bench.get(held[0].job.id)
    assert (job.state, job.losses, job.worker_losses, job.attempt) == (State.QUEUED, 1, 0, 0)
    [attempt] = await attempts(bench.db, job.id)
    assert (attempt.outcome, attempt.error_type) == (AttemptOutcome.LOST, "ProcessDied")
    assert held[0] not in list(bench.held_leases)


async def test_one_knows_when_everything_is_settled(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    async with asyncio.timeout(5):
        await bench.settler.emptied()
        bench.loop_way.started[0].end(Released())
        waiting = asyncio.create_task(bench.settler.emptied())
        await asyncio.sleep(0)
        assert not waiting.done()
        await bench.settler.tick()
        await waiting


async def test_a_stopped_handler_that_has_ended_is_settled_by_why_it_was_stopped(
    bench: Bench, held: Sequence[HeldLease]
) -> None:
    """What ended for its lease's sake goes back, uncharged."""
    held[0].stop(StopReason.LEASE, bench.boot.now)
    bench.loop_way.started[0].end(Released())
    await bench.settler.tick()

    job = await bench.get(held[0].job.id)
    assert (job.state, job.attempt, job.losses) == (State.QUEUED, 0, 0)
