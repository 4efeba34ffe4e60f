"""The watch over handlers: time, trust, cancels, the ladder, and the loop they run on."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import BY
from support.store import SECOND
from tenure._clock import boottime
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._runtime.held_leases import StopReason
from tenure._runtime.lease_board import NEVER, Phase

if TYPE_CHECKING:
    from tenure._runtime.watchdog import Watchdog
    from tests.services.bench import Bench


async def after(bench: Bench, watchdog: Watchdog, seconds: float) -> None:
    """One look so much later; the loop is alive."""
    bench.advance(seconds)
    await watchdog.tick()
    await asyncio.sleep(0)


async def test_a_handler_is_stopped_when_its_time_is_up_and_not_before(bench: Bench) -> None:
    """Shows R19."""
    bench.task(timeout=10)
    [held] = await bench.start(bench.dispatcher())
    watchdog = bench.watchdog()
    await after(bench, watchdog, 9.9)
    assert bench.loop_way.started[0].requested == []

    await after(bench, watchdog, 0.1)
    assert held.stopping is StopReason.TIMEOUT
    assert bench.loop_way.started[0].requested == [StopReason.TIMEOUT]
    assert not held.lease_state.lost


async def test_a_call_s_own_timeout_and_none_at_all(bench: Bench) -> None:
    """Shows R19."""
    bench.task(timeout=None)
    dispatcher = bench.dispatcher()
    [without] = await bench.start(dispatcher)
    [short] = await bench.start(dispatcher, meta={"timeout": 5})

    assert (without.timeout_at, short.timeout_at) == (NEVER, 1005.0)


async def test_a_handler_is_stopped_when_the_trust_in_its_lease_runs_out(bench: Bench) -> None:
    """By itself, before the store would let anybody else take it. Shows R4."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    watchdog = bench.watchdog()
    await after(bench, watchdog, 24.9)
    assert not held.lease_state.lost

    await after(bench, watchdog, 0.1)
    assert (held.stopping, held.lease_state.lost) == (StopReason.LEASE, True)
    # Two seconds to stop, and three before the lease is over.
    assert held.must_end_at == 1027.0


async def test_lease_at_risk_overrides_a_weaker_stop(bench: Bench) -> None:
    bench.task(timeout=10)
    [held] = await bench.start(bench.dispatcher())
    watchdog = bench.watchdog()
    await after(bench, watchdog, 10)
    await after(bench, watchdog, 15)

    assert bench.loop_way.started[0].requested == [StopReason.TIMEOUT, StopReason.LEASE]
    assert held.stopping is StopReason.LEASE


async def test_what_has_not_started_is_given_back_when_its_lease_is_at_risk(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    running, waiting = await bench.start(dispatcher, 2)
    watchdog = bench.watchdog(dispatcher)
    running.extend(bench.boot.advance(20))
    bench.boot.advance(5)
    await watchdog.tick()
    await asyncio.sleep(0)
    await bench.settler.tick()

    assert (running.stopping, waiting.stopping) == (None, StopReason.LEASE)
    assert list(bench.held_leases) == [running]
    job = await bench.get(waiting.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    [attempt] = await bench.db.run(bench.db.store.jobs.attempts(job.id))
    assert attempt.outcome is AttemptOutcome.RELEASED


async def test_a_cancel_is_given_time_before_the_handler_is_stopped(bench: Bench) -> None:
    bench.task(stop_within=3)
    [held] = await bench.start(bench.dispatcher())
    await bench.db.run(bench.db.store.job_commands.cancel([held.job.id], BY))
    bench.advance(10)
    await bench.renewer().tick()
    watchdog = bench.watchdog()
    await after(bench, watchdog, 0)
    await after(bench, watchdog, 2.9)
    [running] = bench.loop_way.started
    assert (running.requested, running.knows_of_cancel) == ([], 1)

    await after(bench, watchdog, 0.1)
    assert held.stopping is StopReason.CANCEL


async def test_a_cancel_that_a_report_brought_stops_the_handler_too(bench: Bench) -> None:
    """The handle notes it; the report has put the next renewal off."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.lease_state.cancel_requested = True
    held.lease_state.extended(bench.boot.now, None)
    watchdog = bench.watchdog()
    await after(bench, watchdog, 0.1)
    await after(bench, watchdog, 2.1)

    assert held.stopping is StopReason.CANCEL


async def test_a_lease_that_a_report_extended_is_trusted_until_then(bench: Bench) -> None:
    """A tenth of the extension is the margin. Renewals don't shorten it."""
    bench.task(timeout=None)
    [held] = await bench.start(bench.dispatcher())
    held.lease_state.extended(bench.boot.now, 600 * SECOND)
    renew_at = held.renew_at
    # 600 s - 60 s - 2 s to stop.
    assert (held.trusted_until, held.must_end_at) == (1538.0, 1540.0)
    held.extend(bench.boot.advance(10))
    assert (held.trusted_until, held.renew_at) == (1538.0, renew_at + 10)
    watchdog = bench.watchdog()
    await after(bench, watchdog, 527.9)
    assert held.stopping is None

    await after(bench, watchdog, 0.1)
    assert held.stopping is StopReason.LEASE


async def test_an_extension_never_shortens_the_trust(bench: Bench) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.lease_state.extended(bench.boot.now, 600 * SECOND)
    held.lease_state.extended(bench.boot.advance(1), 60 * SECOND)
    assert held.trusted_until == 1538.0
    held.lease_state.extended(bench.boot.now, SECOND)
    assert held.trusted_until == 1538.0
    held.lease_state.extended(bench.boot.advance(580), None)
    # Later than the extension: the lease's own length counts again.
    assert held.trusted_until == bench.boot.now + 25


@pytest.mark.parametrize("form", ["on the loop", "in a process"])
async def test_handler_that_ignores_a_stop_is_escalated(bench: Bench, form: str) -> None:
    """Asked once; then its process is ended, or the child is told that it must end. Shows R19."""
    bench.task(timeout=10, process=form == "in a process")
    [held] = await bench.start(bench.dispatcher())
    [running] = [*bench.loop_way.started, *bench.process_way.started]
    watchdog = bench.watchdog()
    await after(bench, watchdog, 10)
    await after(bench, watchdog, 1.9)
    assert (running.requested, running.killed, bench.doomed) == ([StopReason.TIMEOUT], 0, [])

    await after(bench, watchdog, 0.1)
    await after(bench, watchdog, 0.1)
    assert (running.requested, running.killed) == ([StopReason.TIMEOUT], 1)
    if form == "in a process":
        assert (bench.doomed, held.phase) == ([], Phase.IN_PROCESS)
    else:
        assert (bench.doomed, held.phase) == ([(held, StopReason.TIMEOUT)], Phase.TIMED_OUT)


async def test_ignored_lease_loss_ends_the_child(bench: Bench) -> None:
    """Shows R4."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    watchdog = bench.watchdog()
    await after(bench, watchdog, 25)
    await after(bench, watchdog, 2)

    assert bench.doomed == [(held, StopReason.LEASE)]
    # It is not a timeout: the parent must not wait for it.
    assert held.phase is Phase.STARTED


async def test_a_handler_that_ignores_its_cancel_is_stopped_when_its_time_is_up(
    bench: Bench,
) -> None:
    """Else it would run for ever, with its lease renewed. Shows R19."""
    bench.task(timeout=15)
    [held] = await bench.start(bench.dispatcher())
    held.stop(StopReason.CANCEL, bench.boot.now)
    watchdog = bench.watchdog()
    await after(bench, watchdog, 5)
    held.extend(bench.boot.now)
    await after(bench, watchdog, 10)
    held.extend(bench.boot.now)
    await after(bench, watchdog, 2)

    assert held.stopping is StopReason.TIMEOUT
    assert bench.doomed == [(held, StopReason.TIMEOUT)]


async def test_a_handler_that_is_out_of_time_and_runs_on_can_still_lose_its_trust(
    bench: Bench,
) -> None:
    """In a program without a parent no other process would report it. Shows R4."""
    bench.task(timeout=10)
    [held] = await bench.start(bench.dispatcher())
    watchdog = bench.watchdog()
    await after(bench, watchdog, 10)
    await after(bench, watchdog, 2)
    assert held.phase is Phase.TIMED_OUT

    await after(bench, watchdog, 13)
    assert held.lease_state.lost


async def test_a_blocked_loop_is_reported_with_its_stack_and_cleared_when_it_moves(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The watch runs on a thread of its own; here, the loop that it watches is another's."""
    monkeypatch.setattr("tenure._runtime.watchdog.boottime", boottime)
    go, ready = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def careless_handler() -> None:
        ready.set()
        go.wait(10)

    async def handlers() -> None:
        loops.append(asyncio.get_running_loop())
        careless_handler()
        await asyncio.sleep(0.05)

    thread = threading.Thread(target=asyncio.run, args=[handlers()])
    thread.start()
    assert ready.wait(5)
    watchdog = bench.watchdog(
        loop=loops[0], thread=thread.ident, defaults=bench.defaults.scaled(0.01)
    )
    await watchdog.tick()
    until = time.monotonic() + 5
    while watchdog.blocked is None and time.monotonic() < until:
        await asyncio.sleep(0.01)
        await watchdog.tick()
    await watchdog.tick()

    values = watchdog.blocked or {}
    assert "careless_handler" in values["stack"]
    assert values["seconds"] >= 0
    assert caplog.text.count("event loop blocked") == 1
    go.set()
    await asyncio.to_thread(thread.join, 5)
    await watchdog.tick()
    assert (watchdog.blocked, watchdog._stopping) == (None, True)


async def test_a_loop_that_moves_while_its_stack_is_taken_was_blocked_for_a_finite_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by `just prove faults`: -Infinity is not JSON, and the heartbeat was refused."""
    watchdog = bench.watchdog()
    monkeypatch.setattr(watchdog, "_on_loop", lambda _: None)
    await watchdog.tick()
    bench.advance(bench.defaults.blocked_after.total_seconds() + 1)

    def stack() -> str:
        watchdog._alive()
        return "here"

    monkeypatch.setattr(watchdog, "_stack", stack)
    await watchdog.tick()
    assert watchdog.blocked == {
        "seconds": bench.defaults.blocked_after.total_seconds() + 1,
        "stack": "here",
    }

    await watchdog.tick()
    assert watchdog.blocked is None
