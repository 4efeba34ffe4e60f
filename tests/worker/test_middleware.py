"""Middleware around run: in the handler's thread, task and context, and part of its attempt."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from tenure import GiveUp, Snooze, current_job
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure.errors import ConfigError
from tests.worker.acts import attempts, end, periods, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.store import Database
    from tenure import AsyncJob, Draft, Job, Tenure

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


def handlers(app: Tenure, **options: Any) -> list[Any]:
    """One task of each kind, which answers with its thread and what it finds in the context."""

    @app.task(name="plain", **options)
    def plain() -> list[Any]:
        return [threading.get_ident(), TENANT.get()]

    @app.task(name="awaiting", **options)
    async def awaiting() -> list[Any]:
        await asyncio.sleep(0)
        return [threading.get_ident(), TENANT.get()]

    return [plain, awaiting]


async def test_middleware_is_around_both_kinds_of_handler_in_their_context(app: Tenure) -> None:
    seen: list[Any] = []

    @app.middleware("enqueue")
    def whose(draft: Draft) -> Iterator[None]:
        draft.meta["tenant"] = "ada"
        yield

    @app.middleware("run")
    def tenant(job: Job | AsyncJob) -> Iterator[None]:
        assert current_job() is job
        TENANT.set(job.meta["tenant"])
        yield
        seen.append((job.id, job.task, job.attempt, threading.get_ident()))

    async with app.run():
        for task in handlers(app):
            handle = await task.aenqueue()
            ended = await end(handle)
            assert ended.result == [seen[-1][3], "ada"]
            assert seen[-1][:3] == (handle.id, task.name, 1)
    assert TENANT.get() == "nobody"


async def test_what_one_job_sets_in_its_context_is_not_there_for_the_next(app: Tenure) -> None:
    """Nor is what the program around it had set: a job is often started from within another."""
    token = TENANT.set("the program")

    @app.middleware("run")
    def tenant(job: Job | AsyncJob) -> Iterator[None]:
        found = TENANT.get()
        TENANT.set("tenant-7")
        assert found == "nobody"
        yield

    tasks = handlers(app, max_attempts=1)
    handles = await app.aenqueue_many(tasks[n % 2].bind() for n in range(10))
    async with app.run(concurrency=1):
        for handle in handles:
            assert (await end(handle)).state is State.COMPLETED
    TENANT.reset(token)


async def test_the_first_that_was_registered_is_the_outermost_sync_or_async(app: Tenure) -> None:
    order: list[str] = []

    def named(name: str) -> None:
        @app.middleware("run")
        def around(job: Job | AsyncJob) -> Iterator[None]:
            order.append(f"{name} in")
            yield
            order.append(f"{name} out")

    named("first")

    @app.middleware("run", only="async")
    async def second(job: AsyncJob) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        order.append("second in")
        yield
        await job.progress(message="done")
        order.append("second out")

    @app.middleware("run", only="def")
    def of_threads(job: Job) -> Iterator[None]:
        order.append("of threads in")
        yield
        job.progress(message="done")
        order.append("of threads out")

    named("third")
    plain, awaiting = handlers(app)
    async with app.run():
        for task in (awaiting, plain):
            assert (await end(await task.aenqueue())).progress["message"] == "done"
    middles = ["second", "of threads"]
    assert order == [
        f"{name} {way}"
        for middle in middles
        for name, way in [
            *((name, "in") for name in ("first", middle, "third")),
            *((name, "out") for name in ("third", middle, "first")),
        ]
    ]


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", [0, 1])
async def test_what_middleware_raises_counts_as_the_handlers(
    app: Tenure, place: str, kind: int
) -> None:
    seen: list[str] = []

    @app.middleware("run")
    def outer(job: Job | AsyncJob) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    @app.middleware("run")
    def raising(job: Job | AsyncJob) -> Iterator[None]:
        if place == "before":
            raise LookupError("no such tenant")
        yield
        raise LookupError("no such tenant")

    async with app.run():
        handle = await handlers(app, max_attempts=1)[kind].aenqueue()
        ended = await end(handle)
        [only] = await attempts(app, handle)
    assert (ended.state, only.outcome) == (State.FAILED, AttemptOutcome.FAILED)
    assert (only.error_type, only.error_message) == ("LookupError", "no such tenant")
    assert seen == ["LookupError"]


@pytest.mark.parametrize("kind", ["def", "async"])
async def test_an_error_can_be_turned_into_another_and_not_into_a_result(
    app: Tenure, kind: str
) -> None:
    @app.middleware("run")
    def too_wide(job: Job | AsyncJob) -> Iterator[None]:
        with contextlib.suppress(Exception):
            yield

    @app.middleware("run")
    def unless_hopeless(job: Job | AsyncJob) -> Iterator[None]:
        try:
            yield
        except ZeroDivisionError as error:
            raise GiveUp("hopeless") from error
        except TimeoutError as error:
            raise Snooze(0) from error

    tries: list[str] = []

    def run(way: str) -> str:
        tries.append(way)
        if way == "hopeless":
            raise ZeroDivisionError
        if way == "later" and tries.count("later") == 1:
            raise TimeoutError
        if way == "bad":
            raise ValueError("a value")
        if way == "stop":
            raise StopIteration
        return way

    async def arun(way: str) -> str:
        return run(way)

    task: Any = app.task(name="work", max_attempts=1)(run if kind == "def" else arun)
    async with app.run():
        ends = {way: await task.aenqueue(way) for way in ("hopeless", "later", "bad", "stop", "ok")}
        rows = {way: await end(handle) for way, handle in ends.items()}
        [hopeless] = await attempts(app, ends["hopeless"])
        [bad] = await attempts(app, ends["bad"])
    assert {way: row.state for way, row in rows.items()} == {
        "hopeless": State.FAILED,
        "later": State.COMPLETED,
        "bad": State.FAILED,
        "stop": State.FAILED,
        "ok": State.COMPLETED,
    }
    assert rows["hopeless"].done_reason == "gave_up"
    assert hopeless.error_message == "hopeless"
    assert (bad.error_type, bad.error_message) == ("ValueError", "a value")
    assert tries.count("later") == 2


@pytest.mark.parametrize("kind", ["def", "async"])
async def test_the_time_limit_holds_for_middleware_too(app: Tenure, kind: str) -> None:
    """Shows R19."""
    seen: list[str] = []

    @app.middleware("run")
    def outer(job: Job | AsyncJob) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    if kind == "def":

        @app.middleware("run")
        def slow(job: Job | AsyncJob) -> Iterator[None]:
            for _ in range(6000):
                threading.Event().wait(0.01)
            yield
    else:

        @app.middleware("run", only="async")
        async def aslow(job: AsyncJob) -> AsyncIterator[None]:
            await asyncio.sleep(60)
            yield

    task = handlers(app, max_attempts=1, timeout=0.3)[kind == "async"]
    async with app.run():
        handle = await task.aenqueue()
        await end(handle, within=30)
        [only] = await attempts(app, handle)
    assert only.outcome is AttemptOutcome.TIMED_OUT
    assert seen == ["Stopped" if kind == "def" else "CancelledError"]


async def test_a_job_that_its_handler_completed_stays_so_whatever_middleware_does(
    app: Tenure,
) -> None:
    @app.middleware("run")
    def late(job: Job | AsyncJob) -> Iterator[None]:
        yield
        raise ValueError("too late")

    @app.task
    def pays(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("SELECT 1")

    async with app.run():
        ended = await end(await pays.aenqueue())
    assert ended.state is State.COMPLETED


async def test_the_report_that_reaches_the_target_passes_through_middleware(app: Tenure) -> None:
    @app.middleware("run")
    def careful(job: Job | AsyncJob) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise AssertionError from error

    @app.task
    async def collects(job: AsyncJob) -> None:
        await job.progress(items={"a": 1})

    async with app.run():
        ended = await end(await collects.using(target=1).aenqueue())
    assert (ended.state, ended.done_reason) == (State.COMPLETED, "target_reached")


async def test_follow_ups_pass_through_the_middleware_around_enqueue(
    app: Tenure, db: Database
) -> None:
    """It can read the job that wants them; what it is told of their ids is nothing yet."""
    known: list[tuple[Any, Any]] = []

    @app.middleware("enqueue")
    def trace(draft: Draft) -> Iterator[None]:
        draft.meta["trace"] = current_job().meta["trace"] if draft.task == "next" else "t1"
        yield
        known.append((draft.id, draft.created))

    @app.task(name="next")
    def following(job: Job) -> Any:
        return job.meta

    @app.task(name="first")
    def first(job: Job) -> None:
        job.enqueue(following.bind())

    async with app.run():
        await end(await first.aenqueue())

        async def followed() -> Any:
            return await db.fetch("SELECT result FROM tenure.job_archive WHERE task = 'next'")

        rows = await until(followed)
    assert [row["result"] for row in rows] == [{"trace": "t1"}]
    assert known[1] == (None, None)


async def test_the_notes_are_there_in_every_attempt_and_apart_from_tags(app: Tenure) -> None:
    @app.middleware("enqueue")
    def trace(draft: Draft) -> Iterator[None]:
        draft.meta |= {"trace": "t", "tags": "mine"}
        yield

    seen: list[Any] = []

    @app.middleware("run")
    def look(job: Job | AsyncJob) -> Iterator[None]:
        seen.append((job.meta, job.tags))
        if len(seen) == 1:
            raise Snooze(0)
        yield

    @app.task
    def twice() -> None: ...

    async with app.run():
        handle = await twice.using(tags=["a"], timeout=20).aenqueue()
        await end(handle)
        await periods(app, handle, 2)
    assert seen == [({"trace": "t", "tags": "mine"}, ["a"])] * 2


async def test_async_middleware_is_refused_where_there_is_a_def(app: Tenure) -> None:
    @app.middleware("run")
    async def session(job: AsyncJob) -> AsyncIterator[None]:
        yield

    @app.task
    async def fine() -> None: ...

    async with app.run():
        await end(await fine.aenqueue())

    @app.task(name="not_fine")
    def plain() -> None: ...

    with pytest.raises(ConfigError, match=r'task not_fine.*only="async"'):
        async with app.run():
            pass
