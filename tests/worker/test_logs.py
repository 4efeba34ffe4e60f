"""What a handler logs is on its attempt: the end of it, its own, and once."""

import asyncio
import logging
import sys
import threading

import pytest

from tenure import AsyncJob, Job, Tenure
from tenure._runtime import log_capture
from tests.worker.acts import attempts, end

log = logging.getLogger("shop")


async def test_what_a_handler_logs_is_on_its_attempt(app: Tenure) -> None:
    """Shows R16."""

    @app.task
    async def chatty(n: int) -> None:
        log.warning("order %d", n)
        raise ValueError

    @app.task
    def quiet() -> None: ...

    async with app.run():
        one, other = await chatty.using(max_attempts=1).aenqueue(7), await quiet.aenqueue()
        await end(one)
        await end(other)
        [answer], [silent] = await attempts(app, one), await attempts(app, other)

    assert (answer.log or "").endswith("WARNING shop: order 7")
    assert silent.log is None


async def test_the_end_of_a_long_log_is_kept(app: Tenure) -> None:
    """Shows R16."""

    @app.task
    def long_winded() -> None:
        for n in range(2000):
            log.warning("line %04d", n)

    async with app.run():
        handle = await long_winded.aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert only.log is not None
    assert 15 * 1024 < len(only.log.encode()) <= 16 * 1024
    assert only.log.endswith("line 1999")


async def test_a_single_long_line_is_cut_in_front(app: Tenure) -> None:
    @app.task
    async def one_line() -> None:
        log.warning("%send", "x" * 40_000)

    async with app.run():
        handle = await one_line.aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert (len(only.log or ""), (only.log or "")[-4:]) == (16 * 1024, "xend")


async def test_logs_of_jobs_side_by_side_do_not_mix(app: Tenure) -> None:
    """On the loop, in threads, and in a thread that a handler went to."""
    meet = asyncio.Barrier(2)
    barrier = threading.Barrier(2, timeout=5)

    @app.task
    async def on_loop(job: AsyncJob) -> None:
        await meet.wait()
        log.warning("job=%s", job.id)
        await meet.wait()
        await asyncio.to_thread(log.warning, "job=%s", job.id)

    @app.task
    def in_thread(job: Job) -> None:
        barrier.wait()
        log.warning("job=%s", job.id)
        barrier.wait()
        log.warning("job=%s", job.id)

    async with app.run():
        calls = [on_loop.bind(), on_loop.bind(), in_thread.bind(), in_thread.bind()]
        handles = await app.aenqueue_many(calls)
        for handle in handles:
            await end(handle)
        logs = [(await attempts(app, handle))[0].log or "" for handle in handles]

    for handle, kept in zip(handles, logs, strict=True):
        answer = [line.rpartition("job=")[2] for line in kept.splitlines()]
        assert answer == [str(handle.id)] * 2


async def test_what_is_logged_in_a_transaction_is_kept_too(app: Tenure) -> None:
    """The completion is written before the handler has returned."""

    @app.task
    async def careful(job: AsyncJob) -> None:
        async with job.transaction():
            log.warning("inside")

    async with app.run():
        handle = await careful.aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert (only.log or "").endswith("inside")


async def test_what_is_logged_before_the_target_is_reached_is_kept_too(app: Tenure) -> None:
    @app.task
    async def collect(job: AsyncJob) -> None:
        log.warning("found one")
        await job.progress(items={"a": 1})

    async with app.run():
        handle = await collect.using(target=1).aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert (only.log or "").endswith("found one")


async def test_a_line_is_kept_once_where_several_workers_share_a_process(app: Tenure) -> None:
    """A part of R33."""

    @app.task
    async def chatty() -> None:
        log.warning("once")

    async with app.run(), app.run():
        handle = await chatty.aenqueue()
        await end(handle)
        [only] = await attempts(app, handle)

    assert (only.log or "").count("once") == 1


def test_a_program_without_logging_still_prints_its_warnings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler on the root logger would else be the only one, and Python print nothing."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    shop = logging.getLogger("shop")
    with log_capture.capture_logs():
        shop.warning("out of stock")
        shop.info("not printed, with or without us")
        other = logging.StreamHandler(sys.stdout)
        shop.addHandler(other)
        shop.warning("once")
        shop.removeHandler(other)
    assert capsys.readouterr() == ("once\n", "out of stock\n")
