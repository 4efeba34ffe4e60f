"""What a handler says by returning and by raising, in an `async def` and in a thread."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from support.store import Database
from tenure import AsyncJob, Cancel, GiveUp, Job, Retry, Snooze, Tenure, current_job
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure.errors import InvalidValue
from tests.worker.acts import attempts, end, periods, row


@dataclass(frozen=True)
class Greeting:
    """A result that is more than JSON has."""

    words: str
    reported_at: datetime


async def test_what_a_handler_returns_is_its_result_rebuilt_by_its_annotation(app: Tenure) -> None:
    @app.task
    async def greet(name: str) -> Greeting:
        return Greeting(f"Hello {name}", datetime(2026, 1, 2, tzinfo=UTC))

    async with app.run():
        handle = await greet.aenqueue(name="Ada")
        ended = await end(handle)

    assert handle.result == Greeting("Hello Ada", datetime(2026, 1, 2, tzinfo=UTC))
    assert (ended.state, ended.done_reason, ended.attempt) == (State.COMPLETED, "worker_done", 1)


async def test_a_plain_function_runs_in_a_thread_of_its_own(app: Tenure) -> None:
    @app.task
    def where() -> int:
        return threading.get_ident()

    async with app.run():
        handle = await where.aenqueue()
        await end(handle)

    assert handle.result != threading.get_ident()


async def test_a_job_says_when_it_wants_to_be_tried_again(app: Tenure) -> None:
    """`Retry(after=…)` stands in for the backoff; the attempt stays charged. Shows R14."""

    @app.task
    async def later() -> None:
        raise Retry("not yet", after=timedelta(hours=2))

    async with app.run():
        handle = await later.aenqueue()
        [first] = await periods(app, handle, 1)
        now = await row(handle)

    assert (first.outcome, first.error_type, first.error_message) == (
        AttemptOutcome.FAILED,
        "Retry",
        "not yet",
    )
    assert (now.state, now.attempt) == (State.QUEUED, 1)
    assert timedelta(hours=2) <= now.run_at - first.ended_at < timedelta(hours=2, seconds=1)


async def test_a_job_that_gives_up_is_a_dead_letter_at_once(app: Tenure) -> None:
    """Shows R15."""

    @app.task
    def hopeless() -> None:
        raise GiveUp("no such customer")

    async with app.run():
        handle = await hopeless.aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, ended.done_reason) == (State.FAILED, "gave_up")
    assert (only.error_type, only.error_message) == ("GiveUp", "no such customer")


async def test_an_error_of_give_up_on_is_not_worth_a_retry(app: Tenure) -> None:
    """Its subclasses neither; any other is tried again. Shows R15."""

    @app.task(give_up_on=(LookupError,))
    def find(key: str) -> None:
        if key == "gone":
            raise KeyError(key)
        raise ValueError(key)

    async with app.run():
        gone, other = await find.aenqueue("gone"), await find.aenqueue("other")
        ended = await end(gone)
        [first] = await periods(app, other, 1)

    assert (ended.state, ended.done_reason) == (State.FAILED, "gave_up")
    assert (first.outcome, (await row(other)).state) == (AttemptOutcome.FAILED, State.QUEUED)
    assert "in find" in (first.error_trace or "")


@pytest.mark.parametrize(("given", "reason"), [("out of stock", "out of stock"), ("", "handler")])
async def test_a_job_that_cancels_itself_ends_without_a_failure(
    app: Tenure, given: str, reason: str
) -> None:
    @app.task
    async def never_mind() -> None:
        raise Cancel(given)

    async with app.run():
        ended = await end(await never_mind.aenqueue())

    assert (ended.state, ended.done_reason) == (State.CANCELLED, reason)


async def test_a_job_that_snoozes_gets_its_attempt_back(app: Tenure) -> None:
    """Shows R13."""

    @app.task
    def tired() -> None:
        raise Snooze(3600)

    async with app.run():
        handle = await tired.aenqueue()
        [first] = await periods(app, handle, 1)
        now = await row(handle)

    assert (first.outcome, first.attempt) == (AttemptOutcome.SNOOZED, 1)
    assert (now.state, now.attempt) == (State.QUEUED, 0)
    assert now.run_at - first.ended_at == timedelta(hours=1)


async def test_arguments_that_no_longer_fit_fail_at_once_and_are_kept(
    app: Tenure, db: Database
) -> None:
    """A deploy took a parameter away: no attempt will fix that, and the payload is the
    evidence. Shows R15."""

    @app.task(name="pay")
    async def pay(amount: int) -> None:
        raise AssertionError("not to be called")

    handle = await pay.aenqueue(5)
    await db.fetch("""UPDATE tenure.job SET args = '{"sum": 5}'""")
    async with app.run():
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, ended.done_reason) == (State.FAILED, "invalid_arguments")
    assert ended.args == {"sum": 5}
    assert "no longer fit" in (only.error_message or "")


@pytest.mark.parametrize(
    "result",
    [object(), float("nan"), {1: "one"}, "x" * 70_000, [[]] * 40_000],
    ids=["object", "nan", "key", "long", "large"],
)
async def test_a_result_that_cannot_be_stored_fails_the_job_and_harms_no_other(
    app: Tenure, result: object, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def odd() -> object:
        return result

    @app.task
    def even() -> int:
        return 2

    async with app.run():
        bad, good = await odd.aenqueue(), await even.aenqueue()
        ended = await end(bad)
        await end(good)

    assert (ended.state, ended.done_reason) == (State.FAILED, "unstorable")
    assert good.result == 2
    [output] = [record.message for record in caplog.records if "failed" in record.message]
    assert output.startswith(f"job {ended.id} (")
    assert "attempt 1 of 3 failed: Unstorable: " in output


async def test_a_result_with_signs_that_postgresql_has_not_is_stored_with_them_escaped(
    app: Tenure,
) -> None:
    @app.task
    async def odd() -> list[str]:
        return ["a\x00b", "\ud800"]

    async with app.run():
        handle = await odd.aenqueue()
        await end(handle)

    assert handle.result == ["a\\u0000b", "\\ud800"]


async def test_code_further_down_finds_its_job(app: Tenure) -> None:
    """Each finds its own, on the loop and in threads, also side by side."""
    meet = asyncio.Barrier(2)
    barrier = threading.Barrier(2, timeout=5)

    def further_down() -> int:
        return current_job().id

    @app.task
    async def on_loop(job: AsyncJob) -> bool:
        await meet.wait()
        return further_down() == job.id

    @app.task
    def in_thread(job: Job) -> bool:
        barrier.wait()
        return further_down() == job.id

    async with app.run():
        calls = [on_loop.bind(), on_loop.bind(), in_thread.bind(), in_thread.bind()]
        handles = await app.aenqueue_many(calls)
        for handle in handles:
            await end(handle)

    assert [handle.result for handle in handles] == [True] * 4
    with pytest.raises(InvalidValue, match="no job is running"):
        current_job()
