"""Stopping a handler that runs: cancel requests, timeouts, revoked leases."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from support.store import Database
from tenure import AsyncJob, Cancel, Job, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure.errors import Stopped
from tests.worker.acts import BY, attempts, end, row, set_off, until


def from_thread(event: asyncio.Event) -> Callable[[], None]:
    """Sets an event of this loop from any thread."""
    loop = asyncio.get_running_loop()

    def set_it() -> None:
        loop.call_soon_threadsafe(event.set)

    return set_it


async def test_running_job_sees_the_cancel_request(app: Tenure) -> None:
    """It may end as it likes; whatever it says, it is cancelled."""
    begun = asyncio.Event()

    @app.task(stop_within=0.8)
    async def polite(job: AsyncJob) -> None:
        begun.set()
        while not job.cancel_requested:  # noqa: ASYNC110 - as handlers do
            await asyncio.sleep(0.01)
        raise ValueError("in the middle")

    async with app.run():
        handle = await polite.aenqueue()
        await set_off(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, ended.done_reason) == (State.CANCELLED, "requested")
    assert only.error_type == "ValueError"


async def test_a_result_that_still_comes_is_accepted(app: Tenure) -> None:
    begun = asyncio.Event()

    @app.task(stop_within=0.8)
    async def quick(job: AsyncJob) -> str:
        begun.set()
        while not job.cancel_requested:  # noqa: ASYNC110 - as handlers do
            await asyncio.sleep(0.01)
        return "just in time"

    async with app.run():
        handle = await quick.aenqueue()
        await set_off(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        await end(handle)

    assert handle.result == "just in time"


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_a_handler_that_does_not_look_is_stopped(app: Tenure, form: str) -> None:
    begun, stopped = asyncio.Event(), threading.Event()
    begin = from_thread(begun)

    @app.task
    async def on_loop() -> None:
        begin()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.set()
            raise

    @app.task
    def in_thread() -> None:
        begin()
        try:
            for _ in range(3000):
                time.sleep(0.01)
        except Stopped:
            stopped.set()
            raise

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        await set_off(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        ended = await end(handle)

    assert stopped.is_set()
    assert (ended.state, ended.done_reason) == (State.CANCELLED, "requested")


async def test_a_handler_that_reports_and_does_not_look_is_stopped_too(app: Tenure) -> None:
    """Its reports bring the request, and put renewals off: nothing else brings it."""
    begun = asyncio.Event()

    @app.task
    async def busy(job: AsyncJob) -> None:
        begun.set()
        for n in range(1000):
            await job.progress(done=n)
            await asyncio.sleep(0.02)

    async with app.run(grace=0.1):
        handle = await busy.aenqueue()
        await set_off(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        ended = await end(handle, within=4)

    assert (ended.state, ended.done_reason) == (State.CANCELLED, "requested")


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_a_handler_whose_time_is_up_is_stopped_and_its_attempt_says_so(
    app: Tenure, form: str
) -> None:
    """Shows R19."""

    @app.task(timeout=0.2, max_attempts=1)
    async def on_loop() -> None:
        await asyncio.sleep(30)

    @app.task(timeout=0.2, max_attempts=1)
    def in_thread() -> None:
        for _ in range(3000):
            time.sleep(0.01)

    async with app.run():
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        ended = await end(handle, within=5)
        [only] = await attempts(app, handle)

    assert (ended.state, ended.done_reason) == (State.FAILED, "attempts")
    assert (only.outcome, only.error_type) == (AttemptOutcome.TIMED_OUT, "TimedOut")
    assert "0.2 s" in (only.error_message or "")


async def test_a_call_may_have_a_timeout_of_its_own(app: Tenure) -> None:
    """Shows R19."""

    @app.task(max_attempts=1)
    async def slow() -> None:
        await asyncio.sleep(30)

    async with app.run():
        handle = await slow.using(timeout=0.1).aenqueue()
        await end(handle, within=5)
        [only] = await attempts(app, handle)

    assert only.outcome is AttemptOutcome.TIMED_OUT
    assert "0.1 s" in (only.error_message or "")


async def test_thread_that_ignores_a_stop_keeps_slot_and_lease_until_it_ends(
    app: Tenure, db: Database
) -> None:
    """Only then is `timed_out` settled, and no other worker has run it meanwhile. Shows R19."""
    go = threading.Event()

    @app.task(timeout=0.1, max_attempts=1)
    def deaf() -> None:
        while not go.wait(10):
            pass

    @app.task
    async def other() -> int:
        return 1

    async with app.run(concurrency=1):
        handle = await deaf.aenqueue()

        async def renewed() -> bool:
            found = await db.fetch("SELECT renewals FROM tenure.job WHERE task LIKE '%deaf'")
            return bool(found and found[0]["renewals"] >= 2)

        await until(renewed)
        assert (await row(handle)).state is State.RUNNING
        waiting = await other.aenqueue()
        go.set()
        await end(handle)
        await end(waiting)
        [only] = await attempts(app, handle)

    assert only.outcome is AttemptOutcome.TIMED_OUT


async def test_a_handler_whose_lease_was_revoked_is_stopped_at_the_next_renewal(
    app: Tenure,
) -> None:
    """Shows R4."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    async with app.run():
        handle = await work.aenqueue()
        await set_off(begun)
        await app.admin.jobs.arevoke([handle.id], BY)
        await set_off(stopped, within=3)

    ended = await row(handle)
    assert (ended.state, ended.done_reason) == (State.CANCELLED, "revoked")


async def test_a_job_that_cancels_itself_after_a_timeout_says_more_than_the_clock(
    app: Tenure,
) -> None:
    """What a handler says at its end is believed, stopped or not."""

    @app.task(timeout=0.1)
    def tidy(job: Job) -> None:
        try:
            for _ in range(3000):
                time.sleep(0.01)
        except Stopped:
            raise Cancel("tidied up") from None

    async with app.run():
        ended = await end(await tidy.aenqueue(), within=5)

    assert (ended.state, ended.done_reason) == (State.CANCELLED, "tidied up")
