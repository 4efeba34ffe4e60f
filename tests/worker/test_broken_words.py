"""Handlers whose own words are broken: they end all the same, and their neighbours with them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure import AsyncJob, Cancel, Retry, Snooze, Tenure
from tenure._model.job import State
from tests.worker.acts import end, periods


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteCancel(Cancel):
    """Words to the worker that cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class MuteExit(Exception):
    """An error that kills its reader."""

    def __str__(self) -> str:
        raise SystemExit(3)


class CancelExit(Cancel):
    """The same, as words to the worker."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


WORDS: list[Callable[[], BaseException]] = [
    Mute,
    MuteCancel,
    MuteExit,
    CancelExit,
    lambda: Retry(after="soon"),  # type: ignore[arg-type]  # What a user without mypy writes.
    lambda: Snooze(float("inf")),
    lambda: Snooze(float("nan")),
]


@pytest.mark.parametrize(
    "word",
    WORDS,
    ids=["mute", "mute cancel", "exit", "cancel exit", "text", "infinite", "nan"],
)
@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_unprintable_error_ends_the_attempt_and_frees_the_slot(
    app: Tenure, word: Callable[[], BaseException], form: str
) -> None:
    """Otherwise the slot and the lease are held until the process ends."""

    @app.task(max_attempts=1)
    async def on_loop() -> None:
        raise word()

    @app.task(max_attempts=1)
    def in_thread() -> None:
        raise word()

    @app.task
    async def next_one() -> int:
        return 1

    async with app.run(concurrency=1, grace=0.1):
        broken = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        [only] = await periods(app, broken, 1, within=3)
        after = await next_one.aenqueue()
        await end(after, within=3)

    assert only.error_type
    assert after.result == 1


@pytest.mark.parametrize("form", ["on the loop", "in a thread"])
async def test_a_huge_error_is_cut_before_the_event_loop_works_on_it(
    app: Tenure, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    """Hiding secrets in 5 MB took seconds of the loop: handlers next to it ran out of time."""

    @app.task(max_attempts=1)
    async def on_loop() -> None:
        raise ValueError("x" * 5_000_000)

    @app.task(max_attempts=1)
    def in_thread() -> None:
        raise ValueError("x" * 5_000_000)

    async with app.run(grace=0.1):
        handle = await (on_loop if form == "on the loop" else in_thread).aenqueue()
        [only] = await periods(app, handle, 1)

    assert (only.error_type, (only.error_message or "")[:3]) == ("ValueError", "xxx")
    [line] = [record.getMessage() for record in caplog.records if "failed: " in record.message]
    assert len(line) < 100_000


@pytest.mark.parametrize("reason", [5, ["why"], object()])
async def test_invalid_reason_does_not_stop_other_settles(app: Tenure, reason: Any) -> None:
    """One handler's mistake would hold up every end in its process."""

    @app.task(max_attempts=1)
    async def odd(job: AsyncJob) -> object:
        return job.finished(reason)

    @app.task
    async def even() -> int:
        return 2

    async with app.run(grace=0.1):
        bad = await odd.aenqueue()
        await asyncio.sleep(0)
        good = await even.aenqueue()
        await end(good, within=3)
        ended = await end(bad, within=3)

    assert good.result == 2
    assert ended.state in (State.COMPLETED, State.FAILED)
