"""Handlers in processes of their own: `process=True`, and what such a process can say."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from support.processes import alive, wait_for
from support.store import Database
from tenure import Handle, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import WorkerId
from tenure._model.job import State
from tenure._runtime import in_processes
from tenure._runtime.runtime import RuntimeOptions, WorkerRuntime
from tenure.worker.loader import load
from tests.worker.acts import BY, attempts, end, periods, row, until

HANDLER = "from tenure.worker.processes import main; main()"
JOBS = """
import asyncio, logging, os, time
from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS

app = Tenure(os.environ["TENURE_DATABASE_URL"], defaults=DEFAULTS.scaled(0.1))

@app.task(name="where", process=True)
def where(job: Job) -> int:
    logging.getLogger("shop").warning("in a process")
    job.progress(cursor=job.attempt)
    return os.getpid()

@app.task(name="there", process=True)
async def there(job: AsyncJob) -> int:
    async with job.transaction() as connection:
        await connection.execute("INSERT INTO ledger VALUES ('there')")
        await job.complete(connection=connection, result=os.getpid())

@app.task(name="collects", process=True)
def collects(job: Job) -> None:
    job.progress(items={"a": 1})

@app.task(name="dies", process=True, max_losses=1)
def dies() -> None:
    os._exit(3)

@app.task(name="killed", process=True, max_losses=1)
def killed() -> None:
    os.kill(os.getpid(), 9)

@app.task(name="greedy", process=True, memory="400MiB", max_attempts=1)
def greedy() -> None:
    bytearray(1 << 30)

@app.task(name="modest", process=True, memory="400MiB")
def modest() -> None: ...

@app.task(name="forks", process=True, max_losses=1)
def forks(job: Job) -> None:
    left = os.fork()
    if not left:
        # What was forked has the channel to the child too, and keeps it open.
        time.sleep(60)
    job.progress(message=str(left))
    os._exit(3)

@app.task(name="copies", process=True)
def copies() -> str:
    if not os.fork():
        return "the copy's"
    time.sleep(0.3)
    return "its own"

@app.task(name="deaf", process=True, max_attempts=1, timeout=0.3)
def deaf() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

@app.task(name="deaf_for_long", process=True, stop_within=0.2)
def deaf_for_long(job: Job) -> None:
    job.progress(message="begun")
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

@app.task(name="brief", process=True, max_attempts=1, timeout=0.2)
def brief() -> int:
    return os.getpid()

@app.task(name="counts_down", process=True, timeout=50)
def counts_down(job: Job) -> float:
    return job.time_left.total_seconds()

@app.task(name="looks", process=True, stop_within=0.8)
def looks(job: Job) -> str:
    job.progress(message="begun")
    for _ in range(1000):
        if job.cancel_requested:
            return "seen"
        time.sleep(0.01)
    return "not seen"

@app.task(name="follows", process=True)
def follows(job: Job) -> None:
    job.enqueue(where.using(queue="elsewhere").bind())
"""


@pytest.fixture
async def app(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Tenure]:
    """An app in a module of its own, which the processes of its handlers load too."""
    name = f"jobs_{uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(JOBS)
    monkeypatch.setenv("TENURE_DATABASE_URL", db.url)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    await db.fetch("CREATE TABLE ledger (entry text)")
    app = load(f"{name}:app")
    app.imports = (name,)
    yield app
    app.close()
    await app.aclose()
    del sys.modules[name]


@asynccontextmanager
async def child(
    app: Tenure, *, slots: int = 2, python: str = sys.executable
) -> AsyncIterator[WorkerRuntime]:
    """The services of a child, in this process and without a parent."""
    shape = RuntimeOptions(
        worker=WorkerId(uuid4()),
        name="child",
        queues=["default"],
        slots=slots,
        handler=[python, "-c", HANDLER, f"{app.imports[0]}:app", "info", "text"],
    )
    core = WorkerRuntime(app, shape, on_unstoppable=lambda _held, _why: None)
    core.start()
    try:
        yield core
    finally:
        await core.drain(5)
        await core.stop()


async def enqueue(app: Tenure, task: str) -> Handle[Any]:
    """Enqueue a job of a task of that module."""
    registered = getattr(sys.modules[app.imports[0]], task)
    handle: Handle[Any] = await registered.using(
        target=1 if task == "collects" else None
    ).aenqueue()
    return handle


async def test_a_handler_in_a_process_reports_logs_and_returns_like_any_other(
    app: Tenure,
) -> None:
    async with child(app):
        one = await enqueue(app, "where")
        first = await end(one)
        two = await enqueue(app, "where")
        again = await end(two)
        [only] = await attempts(app, one)

    assert first.state is State.COMPLETED
    assert first.result != os.getpid()
    assert (first.cursor, (only.log or "").endswith("in a process")) == (1, True)
    # The process is kept for the next job.
    assert first.result == again.result


async def test_a_process_loads_the_app_whatever_handlers_did_to_the_child_before(
    app: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child's directory and environment are its handlers' to change."""
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(tmp_path)
    async with child(app):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        monkeypatch.delenv("TENURE_DATABASE_URL")
        monkeypatch.setenv("PYTHONHOME", "/nowhere")
        ended = await end(await enqueue(app, "where"))

    assert ended.state is State.COMPLETED


async def test_a_job_for_which_no_process_can_be_started_is_given_back(app: Tenure) -> None:
    """No descriptors, no memory, too many processes: the job has not even begun. As a death of
    its own it would be poison after three of these."""
    async with child(app, python="/nowhere/python"):
        handle = await enqueue(app, "where")
        [only] = await periods(app, handle, 1)
        now = await row(handle)

    assert (only.outcome, only.error_type) == (AttemptOutcome.RELEASED, "CannotStart")
    assert "/nowhere/python" in (only.error_message or "")
    assert (now.state, now.attempt, now.losses, now.deaths) == (State.QUEUED, 0, 0, 0)
    assert now.run_at > only.ended_at


async def test_many_at_once_take_processes_that_become_free_and_their_time_begins_there(
    app: Tenure,
) -> None:
    """Each start takes longer than these jobs may; what waits for one is not out of time."""
    async with child(app, slots=8):
        handles = [await enqueue(app, "brief") for _ in range(8)]
        ended = [await end(handle) for handle in handles]

    assert {each.state for each in ended} == {State.COMPLETED}
    assert len({each.result for each in ended}) < 8


async def test_what_waits_for_a_process_when_the_worker_stops_is_given_back(app: Tenure) -> None:
    """Without a process being started for it first: there would not be time for all of them."""
    async with child(app, slots=16):
        handles = [await enqueue(app, "looks") for _ in range(16)]

        async def begun() -> bool:
            return (await row(handles[0])).progress is not None

        await until(begun)

    left = [await row(handle) for handle in handles]
    assert {(each.state, each.attempt) for each in left} == {(State.QUEUED, 0)}


@pytest.mark.parametrize("task", ["there", "collects"])
async def test_a_handler_in_a_process_settles_its_job_itself_like_any_other(
    app: Tenure, db: Database, task: str
) -> None:
    """By its transaction, and by the report that reaches the target: the lease that its process
    was told is the whole lease. Shows R20. Shows R23."""
    async with child(app):
        handle = await enqueue(app, task)
        ended = await end(handle, within=5)
        ends = await attempts(app, handle)

    assert ended.state is State.COMPLETED
    assert [each.outcome for each in ends] == [AttemptOutcome.COMPLETED]
    assert len(await db.fetch("SELECT 1 AS one FROM ledger")) == (task == "there")


async def test_a_process_that_dies_takes_nothing_with_it_and_is_a_loss(app: Tenure) -> None:
    """Shows R7."""
    async with child(app):
        bad, good = await enqueue(app, "dies"), await enqueue(app, "where")
        ended = await end(bad)
        await end(good)
        [only] = await attempts(app, bad)

    assert (ended.state, ended.done_reason, ended.losses) == (State.FAILED, "poison", 1)
    assert (only.outcome, only.error_type) == (AttemptOutcome.LOST, "ProcessDied")
    assert only.error_message == "its own process died: exit code 3"


def ends(core: WorkerRuntime) -> dict[str, int]:
    """How many handlers' processes have ended, by how; only what there is."""
    counted: dict[str, int] = core.metrics_snapshot()["processes"]
    assert set(counted) == set(in_processes.ENDS)
    return {how: number for how, number in counted.items() if number}


@pytest.mark.parametrize(
    ("task", "how"),
    [
        ("dies", "exit"),
        ("killed", "signal"),
        ("greedy", "memory_limit"),
        ("modest", "replaced"),
        ("deaf", "timeout"),
    ],
)
async def test_the_end_of_a_process_is_counted_by_what_ended_it(
    app: Tenure, task: str, how: str
) -> None:
    async with child(app) as core:
        await end(await enqueue(app, task))
        assert ends(core) == {how: 1}


async def test_the_end_of_a_process_is_counted_by_why_its_handler_had_to_stop(
    app: Tenure,
) -> None:
    async with child(app, slots=1) as core:
        handle = await enqueue(app, "deaf_for_long")

        async def begun() -> bool:
            return (await row(handle)).progress is not None

        await until(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        await end(handle)
        assert ends(core) == {"cancel": 1}
        handle = await enqueue(app, "looks")
        await until(begun)
    assert ends(core) == {"cancel": 1, "drain": 1}


async def test_a_process_that_the_kernel_killed_for_memory_is_counted_as_such(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = count()
    monkeypatch.setattr(in_processes, "out_of_memory_kills", lambda: next(kills))
    async with child(app) as core:
        await end(await enqueue(app, "killed"))
        assert ends(core) == {"out_of_memory": 1}


async def test_processes_that_are_not_needed_are_counted_apart_from_deaths(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with child(app) as core:
        monkeypatch.setattr(in_processes, "_IDLE", 0.1)
        await end(await enqueue(app, "where"))

        async def ended() -> bool:
            return ends(core) == {"idle": 1}

        await until(ended)
        monkeypatch.setattr(in_processes, "_IDLE", 60)
        await end(await enqueue(app, "where"))
    assert ends(core) == {"idle": 1, "closed": 1}


async def test_a_process_that_dies_without_a_job_is_counted_when_it_is_missed(
    app: Tenure,
) -> None:
    async with child(app) as core:
        first = await end(await enqueue(app, "where"))
        assert isinstance(first.result, int)
        os.kill(first.result, 9)
        assert wait_for(lambda: not alive(int(str(first.result))), 10)
        await asyncio.sleep(0.1)
        await end(await enqueue(app, "where"))
        assert ends(core) == {"signal": 1}


async def test_a_process_that_cannot_load_the_app_is_counted(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    async with child(app) as core:
        await enqueue(app, "where")

        async def refused() -> bool:
            return ends(core).get("refused", 0) >= 1

        await until(refused)


async def test_what_a_process_forked_does_not_outlive_it(app: Tenure) -> None:
    """It is a loss at once, as if it had forked nothing. Shows R7."""
    async with child(app):
        handle = await enqueue(app, "forks")
        ended = await end(handle)

        assert (ended.state, ended.done_reason) == (State.FAILED, "poison")
        assert ended.progress is not None
        forked = int(ended.progress["message"])
        assert wait_for(lambda: not alive(forked), 10)


async def test_a_copy_that_a_handler_forks_does_not_speak_for_it(app: Tenure) -> None:
    """Nor is what it says taken for the end of the next job in that process. Shows R5."""
    async with child(app, slots=1):
        first, next_one = await enqueue(app, "copies"), await enqueue(app, "where")
        results = (await end(first)).result, (await end(next_one)).result

    assert results[0] == "its own"
    assert isinstance(results[1], int)


async def test_handler_that_ignores_stops_ends_with_its_process(app: Tenure) -> None:
    """Shows R19."""
    async with child(app):
        handle = await enqueue(app, "deaf")
        ended = await end(handle)
        [only] = await attempts(app, handle)

    assert (ended.state, only.outcome) == (State.FAILED, AttemptOutcome.TIMED_OUT)


async def test_a_handler_in_a_process_sees_that_a_cancel_was_requested(app: Tenure) -> None:
    """A renewal brings it to the child, and the child to the process."""
    async with child(app):
        handle = await enqueue(app, "looks")

        async def begun() -> bool:
            return (await row(handle)).progress is not None

        await until(begun)
        await app.admin.jobs.acancel([handle.id], BY)
        ended = await end(handle)

    assert ended.result == "seen"


async def test_what_follows_from_a_job_in_a_process_is_enqueued_with_its_completion(
    app: Tenure, db: Database
) -> None:
    async with child(app):
        await end(await enqueue(app, "follows"))

    [row] = await db.fetch("SELECT task FROM tenure.job WHERE queue = 'elsewhere'")
    assert row["task"] == "where"


async def test_a_handler_in_a_process_knows_how_much_of_its_timeout_is_left(app: Tenure) -> None:
    async with child(app):
        ended = await end(await enqueue(app, "counts_down"))

    assert 30 < ended.result <= 50
