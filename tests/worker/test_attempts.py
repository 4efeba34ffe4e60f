"""Attempts: counted, spaced by the backoff, capped; what is the same in each and what grows."""

import asyncio
from datetime import timedelta

import pytest

from tenure import AsyncJob, Backoff, Job, Retry, Snooze, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tests.worker.acts import BY, attempts, end, periods, row, until

SECOND = timedelta(seconds=1)
AT_ONCE = Backoff(base=timedelta(0))


async def test_attempts_are_counted_up_to_the_cap_and_then_the_job_is_a_dead_letter(
    app: Tenure,
) -> None:
    """Shows R13. Shows R15."""
    seen: list[int] = []

    @app.task(backoff=AT_ONCE, max_attempts=3)
    def broken(job: Job) -> None:
        seen.append(job.attempt)
        raise ValueError("again")

    async with app.run():
        handle = await broken.aenqueue()
        ended = await end(handle)
        ends = await attempts(app, handle)

    assert seen == [1, 2, 3]
    assert (ended.state, ended.done_reason, ended.attempt) == (State.FAILED, "attempts", 3)
    assert [each.outcome for each in ends] == [AttemptOutcome.FAILED] * 3
    [letter] = (await app.admin.jobs.alist(State.FAILED)).jobs
    assert letter.id == handle.id


async def test_a_call_may_have_a_cap_of_its_own(app: Tenure) -> None:
    """Shows R13."""

    @app.task(backoff=AT_ONCE, max_attempts=3)
    async def broken(job: AsyncJob) -> None:
        raise ValueError(job.max_attempts)

    async with app.run():
        ended = await end(await broken.using(max_attempts=1).aenqueue())

    assert (ended.state, ended.attempt) == (State.FAILED, 1)


async def test_a_dead_letter_that_is_retried_runs_in_a_new_life(app: Tenure) -> None:
    """Shows R15."""
    fixed: list[bool] = []

    @app.task(max_attempts=1)
    async def fragile() -> str:
        if not fixed:
            raise ValueError("broken")
        return "well"

    async with app.run():
        handle = await fragile.aenqueue()
        await end(handle)
        fixed.append(True)
        await app.admin.jobs.aretry([handle.id], BY)
        await end(handle)

    assert handle.result == "well"


@pytest.mark.parametrize(
    ("attempt", "least"), [(1, 30), (2, 60), (3, 120)], ids=["first", "second", "third"]
)
async def test_a_failure_waits_twice_as_long_as_the_one_before(
    app: Tenure, attempt: int, least: int
) -> None:
    """From 30 s on, and up to a fifth more. Shows R14."""

    @app.task(max_attempts=10)
    async def broken(job: AsyncJob) -> None:
        if job.attempt < attempt:
            raise Retry(after=0)
        raise ValueError

    async with app.run():
        handle = await broken.aenqueue()
        ends = await periods(app, handle, attempt)
        now = await row(handle)

    waits = now.run_at - ends[-1].ended_at
    assert least * SECOND <= waits <= 1.2 * least * SECOND


async def test_a_task_has_a_backoff_of_its_own(app: Tenure) -> None:
    """Shows R14."""

    @app.task(backoff=Backoff(base=7 * SECOND, cap=600 * SECOND, jitter=0))
    async def broken() -> None:
        raise ValueError

    async with app.run():
        handle = await broken.aenqueue()
        [first] = await periods(app, handle, 1)
        now = await row(handle)

    assert now.run_at - first.ended_at == 7 * SECOND


async def test_the_backoff_of_a_setting_row_holds_where_a_task_has_none(app: Tenure) -> None:
    """Set while the worker runs. Shows R14. Shows R38."""

    @app.task
    async def broken() -> None:
        raise ValueError

    @app.task(backoff=Backoff(base=7 * SECOND, jitter=0))
    async def apart() -> None:
        raise ValueError

    for name, value in (("backoff_base", 100), ("backoff_cap", 50), ("backoff_jitter", 0)):
        await app.admin.settings.aset(name, value, BY)
    async with app.run():

        async def seen_by_worker() -> bool:
            """Whether a beat has followed the first, with which the settings came."""
            workers = await app.admin.workers.alist()
            return any(w.last_heartbeat_at - w.started_at > 0.3 * SECOND for w in workers)

        await until(seen_by_worker)
        one, other = await broken.aenqueue(), await apart.aenqueue()
        [first], [second] = await periods(app, one, 1), await periods(app, other, 1)

    assert (await row(one)).run_at - first.ended_at == 50 * SECOND
    assert (await row(other)).run_at - second.ended_at == 7 * SECOND


async def test_a_higher_fence_and_the_same_key_reach_every_later_attempt(app: Tenure) -> None:
    """The fence is what a careful system compares, the key what it knows again. Shows R20."""
    seen: list[tuple[int, str]] = []

    @app.task(backoff=AT_ONCE)
    async def charge(job: AsyncJob) -> None:
        seen.append((job.fence, job.idempotency_key))
        if len(seen) == 1:
            raise ValueError
        if len(seen) == 2:
            raise Snooze(0)

    async with app.run():
        handle = await charge.aenqueue()
        other = await charge.aenqueue()
        await end(handle)
        await end(other)

    fences, keys = zip(*seen, strict=True)
    mine = [fence for fence, key in seen if key.startswith(f"tenure-{handle.id}-")]
    assert mine == sorted(set(mine))
    assert len(mine) >= 1
    assert len(set(keys)) == 2
    assert all(fence > 0 for fence in fences)


async def test_the_key_stays_when_an_operator_retries(app: Tenure) -> None:
    """Shows R20."""
    seen: list[str] = []

    @app.task(max_attempts=1)
    async def charge(job: AsyncJob) -> None:
        seen.append(job.idempotency_key)
        raise ValueError

    async with app.run():
        handle = await charge.aenqueue()
        await end(handle)
        await app.admin.jobs.aretry([handle.id], BY)
        await periods(app, handle, 2)

    assert len(seen) == 2
    assert len(set(seen)) == 1


async def test_a_handler_that_is_cancelled_by_its_own_code_has_failed(app: Tenure) -> None:
    """A stray cancel does not return the attempt: it would repeat forever."""

    @app.task(max_attempts=1)
    async def stray() -> None:
        raise asyncio.CancelledError

    async with app.run():
        handle = await stray.aenqueue()
        ended = await end(handle)

    assert ended.state is State.FAILED
