"""Bringing claimed jobs to a way to run them, and their ends to the settler."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import BY, attempts
from support.store import SECOND, A, B, lanes
from tenure import Backoff
from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tenure._runtime.held_leases import StopReason
from tenure._runtime.lease_board import Phase
from tenure._runtime.on_loop import LoopExecutor
from tenure.errors import Error
from tests.conformance import operating
from tests.services.bench import SHARED_DEATH

if TYPE_CHECKING:
    from tenure import AsyncJob
    from tests.services.bench import Bench


async def test_as_many_run_as_there_are_slots_and_the_rest_waits(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=2)
    held = await bench.start(dispatcher, 3)
    phases = [each.phase for each in held]

    assert phases == [Phase.STARTED, Phase.STARTED, Phase.UNSTARTED]
    assert (dispatcher.running, dispatcher.idle, bench.held_leases.running) == (2, False, 2)
    bench.loop_way.started[1].end(Succeeded())
    assert [each.phase for each in held] == [Phase.STARTED, Phase.ENDED, Phase.STARTED]
    for running in (bench.loop_way.started[0], bench.loop_way.started[2]):
        running.end(Succeeded())
    assert dispatcher.idle


async def test_an_expired_job_is_cancelled_and_not_run(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher()
    [fresh, old] = [
        await bench.enqueue(meta={"expires_in": 60.0}),
        await bench.enqueue(meta={"expires_in": 59.0}),
    ]
    bench.db.clock.advance(60 * SECOND)
    op = bench.db.store.leases.claim(lanes("default"), count=2, worker=A)
    dispatcher.take(await bench.db.run(op), bench.boot.now)
    await bench.settler.tick()

    assert [each.held.job.id for each in bench.loop_way.started] == fresh
    ended = await bench.get(old[0])
    assert (ended.state, ended.done_reason) == (State.CANCELLED, "expired")


async def test_a_job_that_was_tried_does_not_expire(bench: Bench) -> None:
    """Its failures come to their end, where they are seen: among the dead letters. Shows R15."""
    bench.task()
    [job_id] = await bench.enqueue(meta={"expires_in": 3.0}, max_attempts=2)
    for _ in range(2):
        claims = await bench.db.run(
            bench.db.store.leases.claim(lanes("default"), count=1, worker=A)
        )
        bench.dispatcher().take(claims, bench.boot.now)
        bench.loop_way.started[-1].end(Failed(Error("ValueError", "no")))
        await bench.settler.tick()
        bench.db.clock.advance(3600 * SECOND)
    assert len(bench.loop_way.started) == 2
    assert (await bench.get(job_id)).state is State.FAILED


async def test_a_job_that_lost_its_worker_does_not_expire(bench: Bench) -> None:
    """Shows R7."""
    bench.task()
    await bench.enqueue(meta={"expires_in": 3.0})
    await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=B))
    bench.db.clock.advance(3600 * SECOND)
    await bench.db.run(bench.db.store.leases.rescue())
    claims = await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=A))
    bench.dispatcher().take(claims, bench.boot.now)
    assert len(bench.loop_way.started) == 1


@pytest.mark.parametrize("by", ["retry", "an operation"])
async def test_a_dead_letter_that_is_brought_back_runs_however_late(bench: Bench, by: str) -> None:
    """A new life has no old end. Shows R15."""
    bench.task()
    [job_id] = await bench.enqueue(meta={"expires_in": 5.0, "tags": ["x"]}, max_attempts=1)
    claims = await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=A))
    bench.dispatcher().take(claims, bench.boot.now)
    bench.loop_way.started[-1].end(Failed(Error("ValueError", "no")))
    await bench.settler.tick()
    bench.db.clock.advance(60 * SECOND)
    if by == "retry":
        await bench.db.run(bench.db.store.job_commands.retry([job_id], BY))
    else:
        await operating.finish(bench.db, (await operating.start(bench.db)).id)
    claims = await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=A))
    bench.dispatcher().take(claims, bench.boot.now)

    assert len(bench.loop_way.started) == 2
    assert claims.jobs[0].job.meta == {"tags": ["x"]}


async def test_each_kind_of_handler_has_its_way(bench: Bench) -> None:
    def in_thread() -> None: ...

    bench.task("on_loop")
    bench.task("in_process", process=True)
    bench.app.task(name="in_thread")(in_thread)
    dispatcher = bench.dispatcher()
    for task in ("on_loop", "in_process", "in_thread"):
        await bench.start(dispatcher, task=task)
    executors = (bench.loop_way, bench.process_way, bench.thread_way)

    assert [[each.held.job.task for each in way.started] for way in executors] == [
        ["on_loop"],
        ["in_process"],
        ["in_thread"],
    ]


async def test_a_suspect_runs_in_a_process_of_its_own_whatever_its_task_says(bench: Bench) -> None:
    """A shared loss is suspicion, not guilt. Shows R7."""
    bench.task()
    dispatcher = bench.dispatcher()
    [held] = await bench.start(dispatcher)
    bench.loop_way.started[0].end(SHARED_DEATH)
    await bench.settler.tick()
    op = bench.db.store.leases.claim(lanes("default"), count=1, worker=A)
    dispatcher.take(await bench.db.run(op), bench.boot.now)

    [running] = bench.process_way.started
    assert (running.held.job.id, running.held.suspect) == (held.job.id, True)


async def test_a_job_that_was_to_stop_before_it_began_is_given_back(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    _, waiting = await bench.start(dispatcher, 2)
    waiting.stop(StopReason.LEASE, bench.boot.now)
    bench.loop_way.started[0].end(Succeeded())
    await bench.settler.tick()

    assert len(bench.loop_way.started) == 1
    job = await bench.get(waiting.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert dispatcher.idle


async def test_a_job_is_not_begun_once_its_lease_cannot_be_trusted(bench: Bench) -> None:
    """The answer to the claim lay there while a handler blocked the loop. Shows R4."""
    bench.task()
    dispatcher = bench.dispatcher()
    [job_id] = await bench.enqueue()
    claims = await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=A))
    sent_at = bench.boot.now
    bench.advance(25)
    dispatcher.take(claims, sent_at)
    await bench.settler.tick()

    assert bench.loop_way.started == []
    job = await bench.get(job_id)
    assert (job.state, job.attempt, len(bench.held_leases)) == (State.QUEUED, 0, 0)
    assert dispatcher.idle


async def test_job_past_its_lease_is_not_started_and_its_release_is_harmless(
    bench: Bench,
) -> None:
    """The process was stopped so long that another has the job now; a slot is free before the
    watcher has looked. Shows R4. Shows R5."""
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    _, waiting = await bench.start(dispatcher, 2)
    bench.advance(31)
    await bench.db.run(bench.db.store.leases.rescue(count=10))
    bench.db.clock.advance(SECOND)
    for _ in range(2):
        await bench.db.run(bench.db.store.leases.claim(lanes("default"), count=1, worker=B))
    theirs = await bench.get(waiting.job.id)
    bench.loop_way.started[0].end(Succeeded())
    await bench.settler.tick()

    assert (len(bench.loop_way.started), len(bench.held_leases)) == (1, 0)
    job = await bench.get(waiting.job.id)
    assert (job.state, job.claimed_by, job.token) == (State.RUNNING, B, theirs.token)


async def test_a_handler_that_was_to_stop_while_another_blocked_the_loop_is_not_begun(
    bench: Bench,
) -> None:
    """It is the next one in the same task, before the call that would stop it. Shows R4."""
    ran: list[int] = []

    @bench.app.task(name="work")
    async def work(job: AsyncJob) -> None:
        ran.append(job.id)
        for held in bench.held_leases:
            held.stop(StopReason.LEASE, bench.boot.now)

    dispatcher = bench.dispatcher()
    on_loop = LoopExecutor(bench.app.engine, bench.app.hooks)
    dispatcher._executors = replace(dispatcher._executors, loop=on_loop)
    first, second = await bench.start(dispatcher, 2)
    await dispatcher.until_idle()
    await bench.settler.tick()

    assert ran == [first.job.id]
    job = await bench.get(second.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)


async def test_what_has_not_started_is_given_back_together(bench: Bench) -> None:
    """Shows R31."""
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    running, *waiting = await bench.start(dispatcher, 4)
    dispatcher.release_all()
    await bench.settler.tick()

    assert list(bench.held_leases) == [running]
    for held in waiting:
        job = await bench.get(held.job.id)
        assert (job.state, job.attempt) == (State.QUEUED, 0)


async def test_what_settled_itself_is_not_settled_again(bench: Bench) -> None:
    """By its transaction, or by the report that reached its target."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.lease_state.settled = True
    bench.loop_way.started[0].end(Succeeded())
    await bench.settler.tick()

    assert (len(bench.held_leases), bench.links[0].runs) == (0, 0)


@pytest.mark.parametrize(
    ("own", "waits"), [(None, 100), (Backoff(base=7 * SECOND, jitter=0), 7)], ids=["set", "own"]
)
async def test_a_failure_waits_by_the_tasks_backoff_or_else_by_the_one_that_was_set(
    bench: Bench, own: Backoff | None, waits: int
) -> None:
    """Shows R14. Shows R38."""
    bench.task(backoff=own)
    bench.settings.backoff = Backoff(base=timedelta(seconds=100), jitter=0)
    [held] = await bench.start(bench.dispatcher())
    bench.loop_way.started[0].end(Failed(Error("ValueError", "no")))
    await bench.settler.tick()

    job = await bench.get(held.job.id)
    assert job.run_at == bench.db.clock.now + waits * SECOND


async def test_an_end_that_cannot_be_judged_is_a_failure_and_keeps_no_lease(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise it would be renewed for ever, with no timeout left to end it. Shows R4."""
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    [held] = await bench.start(dispatcher)
    held.task = replace(held.task, backoff=5)  # type: ignore[arg-type]  # Refused at decoration.
    bench.loop_way.started[0].end(Failed(Error("ValueError", "no")))
    await bench.settler.tick()

    assert (dispatcher.idle, len(bench.held_leases)) == (True, 0)
    job = await bench.get(held.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 1)
    assert job.run_at > bench.db.clock.now
    [attempt] = await attempts(bench.db, job.id)
    assert attempt.error_type == "AttributeError"
    assert "task work: could not determine the outcome, attempt failed" in caplog.text


async def test_a_way_that_cannot_begin_gives_the_job_back_and_keeps_no_slot(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more threads, no more processes: the machine is full, the job is not to blame."""
    bench.task()

    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(bench.loop_way, "start", full)
    dispatcher = bench.dispatcher(slots=1)
    [held] = await bench.start(dispatcher)
    await bench.settler.tick()

    assert dispatcher.running == 0
    job = await bench.get(held.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
