"""Handlers that raise or return what no handler should: each ends, and its worker works on."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tenure import Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tests.worker.acts import attempts, end, periods, row


class Odd(BaseException):
    """An error that is not an Exception."""


def raising(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def recursion() -> object:
    return recursion()


def chained(depth: int = 100) -> object:
    if not depth:
        raise ValueError("deep")
    try:
        return chained(depth - 1)
    except Exception as error:
        raise RuntimeError(depth) from error


def circular() -> object:
    ring: list[object] = []
    ring.append(ring)
    return ring


def nested() -> object:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


RAISE = {
    "SystemExit": raising(SystemExit(3)),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "GeneratorExit": raising(GeneratorExit()),
    "StopIteration": raising(StopIteration("x")),
    "CancelledError": raising(asyncio.CancelledError()),
    "Odd": raising(Odd("odd")),
    "ValueError": raising(ValueError("x" * 5_000_000)),
    "RecursionError": recursion,
    "RuntimeError": chained,
}
RETURN: dict[str, Callable[[], object]] = {
    "object": object,
    "nan": lambda: float("nan"),
    "circular": circular,
    "nested": nested,
    "bigint": lambda: 10**5000,
    "generator": lambda: (n for n in range(3)),
}


@pytest.mark.parametrize("name", RAISE)
async def test_whatever_a_thread_raises_fails_its_attempt(app: Tenure, name: str) -> None:
    @app.task(max_attempts=1)
    def bad() -> object:
        return RAISE[name]()

    @app.task
    def good() -> int:
        return 1

    async with app.run():
        handle = await bad.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)
        assert (await end(await good.aenqueue())).state is State.COMPLETED

    assert (ended.state, only.error_type) == (State.FAILED, name)


# A SystemExit or KeyboardInterrupt ends any loop of asyncio, the suite's own with it.
@pytest.mark.parametrize("name", sorted({*RAISE} - {"SystemExit", "KeyboardInterrupt"}))
async def test_whatever_a_coroutine_raises_fails_its_attempt(app: Tenure, name: str) -> None:
    @app.task(max_attempts=1)
    async def bad() -> object:
        return RAISE[name]()

    @app.task
    async def good() -> int:
        return 1

    async with app.run():
        handle = await bad.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)
        assert (await end(await good.aenqueue())).state is State.COMPLETED

    # A coroutine cannot raise StopIteration: Python makes another error of it.
    shown = "RuntimeError" if name == "StopIteration" else name
    assert (ended.state, only.error_type) == (State.FAILED, shown)


@pytest.mark.parametrize("name", RETURN)
async def test_result_that_is_not_json_fails_only_its_job(app: Tenure, name: str) -> None:
    @app.task(max_attempts=1)
    def bad() -> object:
        return RETURN[name]()

    @app.task
    def good() -> int:
        return 1

    async with app.run():
        ended = await end(await bad.aenqueue())
        assert (await end(await good.aenqueue())).state is State.COMPLETED

    assert (ended.state, ended.done_reason) == (State.FAILED, "unstorable")


async def test_a_job_for_which_no_thread_can_be_started_waits_and_has_not_begun(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would claim it again at once, over and over. With `on_loss="fail"` it would be a
    dead letter, though its handler never ran."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("tenure-job_"):
            raise RuntimeError("can't start new thread")
        start(thread)

    @app.task(on_loss="fail")
    def good() -> int:
        return 1

    monkeypatch.setattr(threading.Thread, "start", refuse)
    async with app.run():
        handle = await good.aenqueue()
        [only] = await periods(app, handle, 1)
        await asyncio.sleep(0.5)
        ended = await attempts(app, handle)
        now = await row(handle)

    assert (only.outcome, only.error_type, len(ended)) == (
        AttemptOutcome.RELEASED,
        "CannotStart",
        1,
    )
    assert (now.state, now.attempt) == (State.QUEUED, 0)
    assert now.run_at > only.ended_at
