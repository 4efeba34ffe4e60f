"""Middleware and listeners under a real worker: in handlers' processes, and past a child's end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import children, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.store import Database

JOBS = """
import contextvars, json, os, threading, time
from tenure import Draft, Job, Snooze, Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
tenant = contextvars.ContextVar("tenant", default="nobody")

def write(**line):
    with open("told.jsonl", "a") as file:
        file.write(json.dumps(line | {"pid": os.getpid()}) + "\\n")

@app.middleware("enqueue")
def note(draft):
    draft.meta["tenant"] = "ada"
    yield

@app.middleware("run")
def around(job):
    assert tenant.get() == "nobody"
    tenant.set(job.meta["tenant"])
    try:
        yield
    except BaseException as error:
        write(middleware=job.task, raised=type(error).__name__)
        raise
    write(middleware=job.task, raised=None)

@app.on("started", "completed", "failed", "retrying", "timed_out", "lost", "released")
def told(event):
    error = event.error and event.error.type
    write(event=event.name, task=event.task, attempt=event.attempt, reason=event.reason,
          error=error, state=event.state, tenant=event.meta["tenant"])

@app.on("worker_started", "worker_stopping", "worker_stopped")
def worker(event):
    write(event=event.name)

@app.task(name="apart", process=True)
def apart():
    return [os.getpid(), tenant.get()]

@app.task(name="aapart", process=True)
async def aapart():
    return [os.getpid(), tenant.get()]

@app.task(name="follows", process=True)
def follows(job: Job):
    job.enqueue(apart.bind())

@app.task(name="bad", process=True, max_attempts=1)
def bad():
    raise ValueError("bad")

@app.task(name="pill", max_losses=1, max_attempts=5)
def pill():
    os._exit(3)

@app.task(name="deaf", max_attempts=1, timeout=0.3, stop_within=0.3)
def deaf():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""


class Worker:
    """A `tenure worker` over a module of jobs, and what its hooks wrote."""

    def __init__(self, directory: Path, url: str) -> None:
        (directory / "jobs.py").write_text(JOBS)
        self._directory = directory
        self._environment = os.environ | {
            "TENURE_DATABASE_URL": url,
            "TENURE_RUN_DIR": str(directory / "run"),
        }
        self._log = directory / "worker.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenure", "worker", "jobs:app", "--grace", "3"],
                cwd=directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def enqueue(self, task: str) -> Any:
        """Enqueue a job of a task, and wait for its end; answers with its state and result."""
        program = (
            "import json, jobs; "
            f"row = jobs.{task}.enqueue().wait(60).get(); "
            "print(json.dumps([row.state, row.done_reason, row.result]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr + self.log()
        return json.loads(done.stdout)

    @property
    def reported(self) -> list[dict[str, Any]]:
        """The lines that hooks wrote."""
        path = self._directory / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def soon(self, ask: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line that is as asked, once it is there."""
        assert wait_for(lambda: any(map(ask, self.reported)), seconds=60), self.log()
        return next(filter(ask, self.reported))

    def log(self) -> str:
        return f"{self._log.read_text()}\n{self.reported}"


@pytest.fixture
def worker(db: Database, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path, db.url)
    yield worker
    if worker.process.poll() is None:
        worker.process.kill()
    worker.process.wait()


def test_middleware_is_around_handlers_in_processes_and_their_enqueues(worker: Worker) -> None:
    first = worker.enqueue("apart")
    again = worker.enqueue("aapart")
    assert worker.enqueue("follows")[0] == "completed"
    followed = worker.soon(
        lambda line: (
            line.get("middleware") == "apart"
            and sum(each.get("middleware") == "apart" for each in worker.reported) == 2
        )
    )
    assert worker.enqueue("bad")[:2] == ["failed", "attempts"]
    pid, tenant = first[2]
    assert tenant == again[2][1] == "ada"
    # The process is kept, and the context of the job before is not.
    assert followed["pid"] == pid == again[2][0]
    assert pid not in children(worker.process.pid)
    raised = worker.soon(lambda line: line.get("middleware") == "bad")
    assert (raised["raised"], raised["pid"]) == ("ValueError", pid)
    # Events are told by the child, which settles.
    failed = worker.soon(lambda line: line.get("event") == "failed")
    assert failed["pid"] in children(worker.process.pid)
    assert (failed["task"], failed["error"], failed["tenant"]) == ("bad", "ValueError", "ada")

    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    names = [line["event"] for line in worker.reported if "event" in line]
    assert (names[0], names[-2:]) == ("worker_started", ["worker_stopping", "worker_stopped"])


def test_async_middleware_that_cannot_go_around_a_def_is_refused_at_the_start(
    db: Database, tmp_path: Path
) -> None:
    (tmp_path / "refused.py").write_text(
        f"{JOBS}\n@app.middleware('run')\nasync def session(job):\n    yield\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "tenure", "worker", "refused:app"],
        cwd=tmp_path,
        env=os.environ | {"TENURE_DATABASE_URL": db.url, "TENURE_RUN_DIR": str(tmp_path / "run")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    what, why, todo = ended.stderr.splitlines()[-3:]
    assert ended.returncode == 1
    assert what == "error: the worker cannot start"
    assert "middleware session is an async def and cannot wrap the task apart" in why
    assert 'only="async"' in todo


def test_job_that_killed_its_child_is_reported_by_the_next_child(worker: Worker) -> None:
    """The first time it takes its child along; then it runs in a process of its own. Shows R15."""
    assert worker.enqueue("pill")[:2] == ["failed", "poison"]
    failed = worker.soon(lambda line: line.get("event") == "failed")
    assert (failed["task"], failed["reason"], failed["error"]) == ("pill", "poison", "ProcessDied")
    names = [line["event"] for line in worker.reported if line.get("task") == "pill"]
    assert names.count("lost") == 2
    started = worker.soon(lambda line: line.get("event") == "started" or True)
    assert started["pid"] != failed["pid"]


def test_dead_letter_settled_by_the_parent_reaches_listeners_of_a_child(worker: Worker) -> None:
    """A thread that does not end goes with its child; the parent has no listeners. Shows R15."""
    assert worker.enqueue("deaf")[:2] == ["failed", "attempts"]
    failed = worker.soon(lambda line: line.get("event") == "failed")
    assert (failed["task"], failed["attempt"], failed["error"]) == ("deaf", 1, "TimedOut")
    assert failed["tenant"] == "ada"
    assert failed["pid"] in children(worker.process.pid)
    names = [line["event"] for line in worker.reported if line.get("task") == "deaf"]
    assert names.count("failed") == names.count("timed_out") == 1
