"""Events of a job's life, as the worker that saw to it tells them."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.store import A, lanes
from tenure import Backoff, Cancel, Snooze
from tenure._model.event import EVENTS
from tenure._model.job import NewJob, State
from tests.worker.acts import BY, end, set_off, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure import AsyncJob, Handle, Job, JobEvent, Tenure, WorkerEvent
    from tests.worker.conftest import Apps

AT_ONCE = Backoff(base=timedelta(0), cap=timedelta(0))


def listening(app: Tenure) -> list[JobEvent]:
    """What the app's listeners are told of jobs."""
    events: list[JobEvent] = []
    for name in EVENTS:
        if not name.startswith("worker"):
            app.on(name)(events.append)  # type: ignore[call-overload]  # All names, one by one.
    return events


def lines(reported: list[JobEvent], job_id: object = None) -> list[str]:
    """The events of a job, in order, as words."""
    return [
        f"{event.name} {event.attempt} {event.state}"
        for event in reported
        if job_id is None or event.job_id == job_id
    ]


def ran(reported: list[JobEvent], job_id: object = None) -> list[str]:
    """The same without the enqueue: who enqueues may hear of it after the worker has begun."""
    return [line for line in lines(reported, job_id) if not line.startswith("enqueued")]


async def test_job_that_fails_and_then_succeeds_reports_each_step(app: Tenure) -> None:
    reported = listening(app)

    @app.middleware("enqueue")
    def trace(draft: Any) -> Iterator[None]:
        draft.meta["trace"] = "t"
        yield

    @app.task(name="work", backoff=AT_ONCE, max_attempts=3)
    async def work(job: AsyncJob) -> None:
        await asyncio.sleep(0.02)
        if job.attempt == 1:
            raise ValueError("not yet")

    async with app.run(name="anna"):
        handle = await work.using(key="k").aenqueue()
        await end(handle)
    assert lines(reported) == [
        "enqueued 0 queued",
        "started 1 running",
        "retrying 1 queued",
        "started 2 running",
        "completed 2 completed",
    ]
    retrying, completed = reported[2], reported[4]
    assert {event.job_id for event in reported} == {handle.id}
    assert (retrying.task, retrying.queue, retrying.key) == ("work", "default", "k")
    assert (retrying.max_attempts, retrying.meta, retrying.worker) == (3, {"trace": "t"}, "anna")
    assert retrying.error is not None
    assert (retrying.error.type, retrying.error.message) == ("ValueError", "not yet")
    assert "ValueError: not yet" in retrying.error.trace
    assert retrying.duration is not None
    assert timedelta(seconds=0.01) < retrying.duration < timedelta(seconds=10)
    assert (retrying.after, completed.after) == (timedelta(0), None)
    assert (completed.error, completed.reason) == (None, "worker_done")


async def test_dead_letter_shows_its_error_and_reason(app: Tenure) -> None:
    """Shows R15."""
    events: list[JobEvent] = []
    app.on("failed")(events.append)

    @app.task(max_attempts=2, backoff=AT_ONCE)
    def work() -> None:
        raise ValueError("never")

    @app.task(name="typed")
    def typed(number: int) -> None: ...

    async with app.run():
        handle = await work.aenqueue()
        await end(handle)
        op = app.engine.store.jobs.enqueue([NewJob("typed", args={"no": "x"})])
        [answer] = await app.engine.arun(op)

        async def both() -> bool:
            return len(events) == 2

        await until(both)
    by_id = {event.job_id: event for event in events}
    gave, refused = by_id[handle.id], by_id[answer.id]
    assert (gave.name, gave.state, gave.reason, gave.attempt) == ("failed", "failed", "attempts", 2)
    assert gave.error is not None
    assert gave.error.message == "never"
    assert (refused.reason, refused.attempt) == ("invalid_arguments", 1)


@pytest.mark.parametrize("kind", ["def", "async"])
async def test_timeout_is_reported_and_then_its_outcome(app: Tenure, kind: str) -> None:
    reported = listening(app)

    def slow() -> None:
        for _ in range(1000):
            time.sleep(0.01)

    async def aslow() -> None:
        await asyncio.sleep(60)

    task: Any = app.task(name="slow", timeout=0.2, max_attempts=2, backoff=AT_ONCE)(
        slow if kind == "def" else aslow
    )
    async with app.run():
        await end(await task.aenqueue(), within=30)
    assert ran(reported) == [
        "started 1 running",
        "timed_out 1 queued",
        "retrying 1 queued",
        "started 2 running",
        "timed_out 2 failed",
        "failed 2 failed",
    ]
    assert reported[2].error is not None
    assert reported[2].error.type == "TimedOut"


async def test_snooze_cancel_and_expiry_are_reported(app: Tenure) -> None:
    reported = listening(app)
    tries: list[int] = []

    @app.task
    def snoozes() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise Snooze(0)

    @app.task
    def cancels() -> None:
        raise Cancel("not needed")

    @app.task
    def late() -> None: ...

    handles = [
        await snoozes.aenqueue(),
        await cancels.aenqueue(),
        await late.using(expires_in=0.001).aenqueue(),
    ]
    async with app.run():
        for handle in handles:
            await end(handle)
    first, second, third = (ran(reported, handle.id) for handle in handles)
    assert first == [
        "started 1 running",
        "snoozed 1 queued",
        "started 1 running",
        "completed 1 completed",
    ]
    assert second == ["started 1 running", "cancelled 1 cancelled"]
    assert third == ["cancelled 1 cancelled"]
    assert {event.reason for event in reported if event.name == "cancelled"} == {
        "not needed",
        "expired",
    }


async def test_requested_cancel_is_reported_as_cancel(app: Tenure) -> None:
    reported = listening(app)
    begun = asyncio.Event()

    @app.task(stop_within=0.2)
    async def waits() -> None:
        begun.set()
        await asyncio.sleep(60)

    async with app.run():
        handle = await waits.aenqueue()
        await set_off(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        await end(handle, within=30)
    assert ran(reported) == ["started 1 running", "cancelled 1 cancelled"]


async def test_completion_in_a_transaction_or_by_target_is_reported_once(
    app: Tenure,
) -> None:
    reported = listening(app)

    @app.task
    def pays(job: Job) -> None:
        with job.transaction() as connection:
            connection.execute("SELECT 1")

    @app.task
    async def collects(job: AsyncJob) -> None:
        await job.progress(items={"a": 1})

    @app.task
    async def completes(job: AsyncJob) -> None:
        async with job.transaction() as connection:
            await job.complete(connection=connection, result=1)

    @app.task
    def follows(job: Job) -> None:
        job.enqueue(pays.bind())

    async with app.run():
        handles = [
            await pays.aenqueue(),
            await collects.using(target=1).aenqueue(),
            await completes.aenqueue(),
            await follows.aenqueue(),
        ]
        for handle in handles:
            await end(handle)
    for handle in handles:
        assert ran(reported, handle.id) == ["started 1 running", "completed 1 completed"]


async def test_outcome_changed_by_the_store_is_reported_as_stored(
    app: Tenure, db: Database
) -> None:
    """A completion that was not committed, a result that is too large, and one with follow-ups,
    which do not follow then."""
    reported = listening(app)

    @app.task(max_attempts=1)
    def forgets(job: Job) -> None:
        with psycopg.connect(app.engine.url) as connection:
            job.complete(connection=connection)
            connection.rollback()

    @app.task(max_attempts=1)
    def large() -> str:
        return "x" * 100_000

    @app.task(max_attempts=1)
    def large_and_more(job: Job) -> str:
        job.enqueue(large.using(queue="elsewhere").bind())
        return "x" * 100_000

    async with app.run(queues=["default"]):
        handles: list[Handle[Any]] = [
            await task.aenqueue() for task in (forgets, large, large_and_more)
        ]
        rows = [await end(handle) for handle in handles]
    events = [
        event
        for handle in handles
        for event in reported
        if event.job_id == handle.id and event.error
    ]
    assert [event.name for event in events] == ["failed"] * 3
    assert [event.reason for event in events] == [row.done_reason for row in rows]
    assert [event.error.type for event in events if event.error] == [
        "NotCommitted",
        "Unstorable",
        "Unstorable",
    ]
    assert await db.fetch("SELECT FROM tenure.job") == []


async def test_started_jobs_returned_by_a_drain_are_reported(app: Tenure) -> None:
    reported = listening(app)
    begun = asyncio.Event()

    @app.task
    async def waits() -> None:
        begun.set()
        await asyncio.sleep(60)

    handles = [await waits.aenqueue(), await waits.aenqueue()]
    async with app.run(concurrency=1, grace=0.1):
        await set_off(begun)
    assert ran(reported, handles[0].id) == ["started 1 running", "released 1 queued"]
    assert ran(reported, handles[1].id) == []


@pytest.mark.parametrize(("losses", "becomes"), [(9, "poison"), (0, None)])
async def test_expired_lease_is_reported_by_its_rescuer(
    app: Tenure, db: Database, losses: int, becomes: str | None
) -> None:
    """Shows R15."""
    reported = listening(app)

    @app.task(name="work", queue="mail")
    def work() -> None: ...

    handle = await work.aenqueue()
    engine = app.engine
    await engine.arun(engine.store.leases.claim(lanes("mail"), count=1, worker=A))
    await db.fetch(
        "UPDATE tenure.job SET lease_expires_at = now(), renewals = 0, worker_losses = $1", losses
    )
    async with app.run():
        ended = await end(handle)
    first = ["lost 1 failed", "failed 1 failed"] if becomes else ["lost 1 queued"]
    assert ran(reported)[: len(first)] == first
    assert reported[1].reason == ended.done_reason if becomes else reported[1].reason is None
    assert ended.state is (State.FAILED if becomes else State.COMPLETED)


async def test_a_worker_tells_that_it_starts_and_that_it_stops(apps: Apps) -> None:
    app = apps()
    events: list[WorkerEvent] = []
    app.on("worker_started", "worker_stopping", "worker_stopped")(events.append)

    @app.task(queue="mail")
    def work() -> None: ...

    async with app.run(concurrency=3, name="anna"):
        pass
    assert [(e.name, e.worker, e.queues, e.concurrency) for e in events] == [
        ("worker_started", "anna", ["default", "mail"], 3),
        ("worker_stopping", "anna", ["default", "mail"], 3),
        ("worker_stopped", "anna", ["default", "mail"], 3),
    ]


async def test_a_listener_that_hangs_keeps_no_job_from_being_run(app: Tenure) -> None:
    begun, proceed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.on("started")
    def hangs(event: JobEvent) -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(proceed.wait(), loop).result(60)

    @app.task
    def work() -> None: ...

    async with app.run():
        for handle in await app.aenqueue_many(work.bind() for _ in range(20)):
            assert (await end(handle)).state is State.COMPLETED
        await set_off(begun)
        proceed.set()
