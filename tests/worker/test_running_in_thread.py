"""`with app.run_in_thread()`: a worker inside a sync program, from its start to its end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from support.processes import wait_for
from support.store import Database
from tenure import Job, Tenure
from tenure._model.attempt import AttemptOutcome
from tenure._runtime import embedded
from tenure._store.postgres import pools
from tenure.admin import State
from tenure.errors import InvalidValue, SchemaTooOld, Unreachable
from tenure.types import WorkerState
from tests.worker.acts import BY
from tests.worker.conftest import FAST

DEADLINE = 30.0


@pytest.fixture
def app(db: Database) -> Iterator[Tenure]:
    """An app of a program that has no event loop."""
    app = Tenure(db.url, defaults=FAST)
    yield app
    app.close()


def threads() -> list[str]:
    """The names of the worker's threads that run, except for those of handlers."""
    names = ("tenure-worker", "tenure-service", "tenure-scheduler")
    return [each.name for each in threading.enumerate() if each.name in names]


def connections(url: str) -> int:
    """How many connections of ours the server has."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tenure%' "
            "AND datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_sync_program_runs_its_jobs_and_leaves_nothing_behind(app: Tenure, db: Database) -> None:
    @app.task(queue="mail")
    def sync(n: int) -> tuple[int, str]:
        return n, threading.current_thread().name

    @app.task(queue="mail")
    async def on_loop(n: int) -> tuple[int, str]:
        await asyncio.sleep(0)
        return n, threading.current_thread().name

    with app.run_in_thread(queues=["mail"], concurrency=3, name="script"):
        first, second = sync.enqueue(1), on_loop.enqueue(2)
        assert first.wait(DEADLINE).result == (1, "tenure-job_0")
        assert second.wait(DEADLINE).result == (2, "tenure-worker")
        [worker] = app.admin.workers.list()
        assert (worker.name, worker.queues, worker.slots) == ("script", ["mail"], 3)
        assert worker.state is WorkerState.ACTIVE

    [worker] = app.admin.workers.list()
    assert worker.state is WorkerState.OFFLINE
    assert threads() == []
    app.close()
    assert wait_for(lambda: connections(db.url) == 0, DEADLINE)


def test_several_worker_threads_share_the_work_by_the_same_rules(app: Tenure, db: Database) -> None:
    """Two workers of one app and one of another: each job runs once, at most W of them at a time.

    Shows R33.
    """
    other = Tenure(db.url, defaults=FAST)
    runs: Counter[int] = Counter()
    lock = threading.Lock()
    now, most = 0, 0

    def count(n: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            runs[n] += 1
            now -= 1

    task = app.task(name="count")(count)
    other.task(name="count")(count)
    app.admin.queues.limit("default", 3, BY)
    with (
        app.run_in_thread(name="one"),
        app.run_in_thread(name="two"),
        other.run_in_thread(name="three"),
    ):
        handles = app.enqueue_many(task.bind(n) for n in range(60))
        for handle in handles:
            handle.wait(DEADLINE)
        owners = {row.claimed_by for handle in handles if (row := handle.get())}
        names = {worker.name for worker in app.admin.workers.list()}
    other.close()

    assert runs == Counter(range(60))
    assert most <= 3
    assert len(owners) > 1
    assert names == {"one", "two", "three"}


def test_workers_that_start_and_end_at_once_do_not_disturb_each_other(
    app: Tenure, db: Database
) -> None:
    @app.task
    def hello(n: int) -> int:
        return n

    errors: list[BaseException] = []

    def program(number: int) -> None:
        try:
            for turn in range(2):
                with app.run_in_thread(name=f"{number}.{turn}", schedules=False):
                    assert hello.enqueue(turn).wait(DEADLINE).result == turn
        except BaseException as error:  # noqa: BLE001 - asserted on below
            errors.append(error)

    programs = [threading.Thread(target=program, args=(number,)) for number in range(4)]
    for each in programs:
        each.start()
    for each in programs:
        each.join(2 * DEADLINE)

    assert errors == []
    assert threads() == []
    app.close()
    assert wait_for(lambda: connections(db.url) == 0, DEADLINE)


def test_every_handler_of_several_workers_gets_a_connection(db: Database) -> None:
    """They share one pool, which is as large as all of them need, also where it existed before."""
    app = Tenure(db.url, pool_size=1, defaults=FAST)
    together = threading.Barrier(6)

    @app.task(timeout=None)
    def meet(job: Job) -> int:
        with job.transaction() as connection:
            connection.execute("SELECT 1")
            return together.wait(DEADLINE) * 0

    with ExitStack() as workers:
        for _ in range(3):
            workers.enter_context(app.run_in_thread(concurrency=2, schedules=False))
        handles = [meet.enqueue() for _ in range(6)]
        states = [handle.wait(DEADLINE).state for handle in handles]
    app.close()

    assert states == [State.COMPLETED] * 6


def test_worker_that_cannot_start_raises_in_the_callers_thread(
    app: Tenure, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_WAIT", 0.5)
    with pytest.raises(SchemaTooOld, match="run: tenure db migrate"):
        enter(Tenure(empty_database))
    with pytest.raises(Unreachable, match="check that the server runs"):
        enter(Tenure("postgresql://ada@127.0.0.1:1/shop"))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        enter(Tenure(empty_database, imports=["no_such_module"]))
    with pytest.raises(InvalidValue, match="queues must be"), app.run_in_thread(queues="mail"):
        raise AssertionError("not to be reached")

    assert threads() == []
    assert wait_for(lambda: connections(empty_database) == 0, DEADLINE)


def enter(app: Tenure) -> None:
    with app.run_in_thread():
        raise AssertionError("not to be reached")


def test_leaving_the_block_lets_a_running_job_finish(app: Tenure) -> None:
    begun = threading.Event()

    @app.task
    def slow() -> str:
        begun.set()
        time.sleep(0.5)
        return "done"

    with app.run_in_thread():
        handle = slow.enqueue()
        assert begun.wait(DEADLINE)
    assert handle.wait(0).result == "done"


def test_leaving_the_block_gives_back_a_job_that_outlasts_the_grace_period(app: Tenure) -> None:
    begun = threading.Event()

    @app.task
    def endless() -> None:
        begun.set()
        while True:
            time.sleep(0.01)

    with app.run_in_thread(grace=0.5):
        handle = endless.enqueue()
        assert begun.wait(DEADLINE)

    [only] = app.admin.jobs.attempts(handle.id)
    row = handle.get()
    assert row is not None
    assert (row.state, only.outcome) == (State.QUEUED, AttemptOutcome.RELEASED)


def test_error_in_the_block_stops_the_worker_and_passes(app: Tenure) -> None:
    with pytest.raises(ZeroDivisionError), app.run_in_thread():
        raise ZeroDivisionError
    [worker] = app.admin.workers.list()
    assert worker.state is WorkerState.OFFLINE
    assert threads() == []


def test_handler_that_ignores_its_cancellation_does_not_hold_the_program(app: Tenure) -> None:
    begun, enough = threading.Event(), threading.Event()

    @app.task
    async def stubborn() -> None:
        begun.set()
        while not enough.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    began = 0.0
    with app.run_in_thread(grace=0.5):
        stubborn.enqueue()
        assert begun.wait(DEADLINE)
        began = time.monotonic()
    assert time.monotonic() - began < DEADLINE / 2
    enough.set()
    assert wait_for(lambda: threads() == [], DEADLINE)


def test_handler_that_blocks_the_loop_does_not_hold_the_program(
    app: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It holds its lease, and gives its job's result once it has ended."""
    monkeypatch.setattr(embedded, "_STOP_WITHIN", 0.5)
    begun, enough = threading.Event(), threading.Event()

    @app.task
    async def blocking() -> str:
        begun.set()
        enough.wait(DEADLINE)
        return "at last"

    with app.run_in_thread(grace=0.1):
        handle = blocking.enqueue()
        assert begun.wait(DEADLINE)
    assert "worker thread: a handler blocks its event loop" in caplog.text
    assert threads() != []
    enough.set()
    assert wait_for(lambda: threads() == [], DEADLINE)
    assert handle.wait(0).state is State.COMPLETED


FORKING = """
import os, sys
from tenure import Tenure

app = Tenure()

@app.task
def pid() -> int:
    return os.getpid()

with app.run_in_thread():
    child = os.fork()
    if child == 0:
        sys.exit(7)
    _, status = os.waitpid(child, 0)
    ran_here = pid.enqueue().wait(30).result == os.getpid()
    print(os.waitstatus_to_exitcode(status), ran_here)
app.close()
"""


def test_forked_child_leaves_the_block_at_once_and_its_parent_continues(db: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        env=os.environ | {"TENURE_DATABASE_URL": db.url},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("7 True\n", "")


def test_module_can_start_a_worker_while_it_is_imported(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread must not wait for a module whose import waits for the thread."""
    (tmp_path / "shop_of_threads.py").write_text(
        "from tenure import Tenure\n"
        f"app = Tenure({db.url!r}, imports=['shop_of_threads'])\n"
        "@app.task(name='hello')\n"
        "def hello() -> str:\n"
        "    return 'hello'\n"
        "with app.run_in_thread():\n"
        f"    answer = hello.enqueue().wait({DEADLINE}).result\n"
        "app.close()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_of_threads  # type: ignore[import-not-found]  # noqa: PLC0415 - made above

    assert shop_of_threads.answer == "hello"


PROGRAM = """
import signal, sys, time
from tenure import Tenure

before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
app = Tenure()

@app.task
def slow() -> str:
    print("begun", flush=True)
    time.sleep(1)
    print("ended", flush=True)
    return "done"

worker = app.run_in_thread()
worker.__enter__()
after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
assert before == after
slow.enqueue()
if "with" in sys.argv:
    try:
        time.sleep(60)
    finally:
        worker.__exit__(None, None, None)
elif "exit" in sys.argv:
    sys.stdin.readline()
"""


@pytest.mark.parametrize("how", ["with", "exit"])
def test_signals_are_left_to_the_program_which_can_always_end(db: Database, how: str) -> None:
    """Ctrl-C ends the block, which drains. Without an end of the block, leases expire."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how],
        env=os.environ | {"TENURE_DATABASE_URL": db.url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        if how == "with":
            program.send_signal(signal.SIGINT)
        printed, errors = program.communicate("\n", timeout=DEADLINE)

    if how == "with":
        assert (printed, program.returncode) == ("ended\n", -signal.SIGINT)
        assert errors.rstrip().endswith("KeyboardInterrupt")
    else:
        assert (errors, program.returncode) == ("", 0)
