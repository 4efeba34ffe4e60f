"""`tenure worker` passes on what it was told, and works. What a worker does is in its own suite."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from support.processes import wait_for
from tenure.cli.commands import run
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from tests.cli.conftest import Command

PROGRAM = """
from tenure import Tenure

app = Tenure()

@app.task
def hello(name: str) -> str:
    return f"Hello {name}"
"""

DEFAULTS = {
    "queues": None,
    "kinds": None,
    "concurrency": None,
    "processes": None,
    "drain": False,
    "lease": None,
    "grace": None,
    "load_timeout": None,
    "max_jobs": None,
    "max_memory": None,
    "name": None,
    "schedules": None,
    "log_level": None,
    "log_format": None,
    "metrics_host": None,
    "metrics_port": None,
}


class StandIn(ModuleType):
    """Stands where the worker is, and remembers how it was called."""

    def __init__(self) -> None:
        super().__init__("tenure.worker")
        self.called: list[tuple[str, dict[str, Any]]] = []

    def main(self, target: str, **options: Any) -> int:
        self.called.append((target, options))
        return 7


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "tenure.worker", stand_in)
    return stand_in


def test_omitted_options_use_settings_and_the_exit_code_is_the_workers(
    worker: StandIn,
) -> None:
    assert run(["worker", "jobs:app"]) == 7
    assert worker.called == [("jobs:app", DEFAULTS)]


@pytest.mark.parametrize(
    ("options", "queues"),
    [
        (["-q", "mail"], ["mail"]),
        (["-q", "mail,default"], ["mail", "default"]),
        (["--queues", "mail", "-q", "b, c,", "-q", "mail"], ["mail", "b", "c"]),
    ],
)
def test_queues_are_repeated_or_separated_by_commas(
    worker: StandIn, options: list[str], queues: list[str]
) -> None:
    run(["worker", "jobs:app", *options])
    assert worker.called == [("jobs:app", DEFAULTS | {"queues": queues})]


def test_every_option_is_passed_on(worker: StandIn) -> None:
    text = "worker jobs:app -c 3 --processes 2 --drain --grace 1.5 --name anna --log-level debug"
    run([*text.split(), "--no-schedules", "--lease", "1m"])
    options = {"concurrency": 3, "processes": 2, "drain": True, "grace": 1.5, "name": "anna"}
    options |= {"schedules": False, "lease": 60.0}
    assert worker.called == [("jobs:app", DEFAULTS | options | {"log_level": "debug"})]


@pytest.mark.parametrize(
    "wrong",
    [
        ["a:b", "--log-level", "loud"],
        ["a:b", "-c", "0"],
        ["a:b", "--processes", "0"],
        ["a:b", "--grace", "-1"],
        ["a:b", "--lease", "soon"],
        ["a:b", "-q,"],
    ],
)
def test_what_cannot_be_is_a_mistake_of_usage(
    worker: StandIn, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["worker", *wrong]) == 2
    assert worker.called == []
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_job_of_the_command_line_is_run_by_a_worker_that_drains(tenure: Command) -> None:
    """Shows R16."""
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    tenure("job", "enqueue", "jobs.hello", "--args", '{"name": "Ada"}')
    assert tenure("worker", "jobs:app", "--drain").code == Exit.DONE
    shown = tenure("job", "show", 1, "--json").json
    assert (shown["job"]["state"], shown["job"]["result"]) == ("completed", "Hello Ada")
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["completed"]


LEASES = """
from tenure import Job, Tenure

app = Tenure()

def lease(job: Job) -> tuple[float, float]:
    ends = []
    for extend in (None, 600):
        job.progress(extend=extend)
        [lease] = [one for one in app.admin.jobs.leases() if one.job_id == job.id]
        ends.append(round(lease.remaining.total_seconds()))
    return job.finished("measured", ends, items={str(extend): extend for extend in ends})

in_thread = app.task(name="in_thread", lease=40)(lease)
in_process = app.task(name="in_process", lease=40, process=True)(lease)
"""


def test_a_worker_claims_with_the_lease_of_its_option(tenure: Command) -> None:
    """In threads and in processes, from where a report extends it too. Shows R8. Shows R21."""
    (tenure.directory / "jobs.py").write_text(LEASES)
    for task in ("in_thread", "in_process"):
        tenure("job", "enqueue", task, "--lease", "50s")
    done = tenure("worker", "jobs:app", "--drain", "--lease", "70s")
    assert done.code == Exit.DONE
    for job in (1, 2):
        shown = tenure("job", "show", job, "--json").json["job"]
        assert (shown["result"], shown["done_reason"], shown["items"]) == ([70, 600], "measured", 2)


@pytest.mark.parametrize(("lease", "words"), [("3s", "must be longer"), ("2d", "at most 1 day")])
def test_a_worker_refuses_a_lease_out_of_range(tenure: Command, lease: str, words: str) -> None:
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    refused = tenure("worker", "jobs:app", "--drain", "--lease", lease)
    assert refused.code == Exit.USAGE
    assert words in refused.err


def test_a_worker_says_that_it_works_at_what_and_that_it_has_ended(tenure: Command) -> None:
    """Who connects, and by which password, is left out."""
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    done = tenure("worker", "jobs:app", "--drain", "--name", "anna", "-c", 7, "--processes", 2)
    works, ended = (line for line in done.err.splitlines() if "worker anna" in line)
    url = urlsplit(tenure.environment()["TENURE_DATABASE_URL"])
    assert re.search(
        r"INFO worker anna started: version=\S+, app=jobs:app, database=postgresql:", works
    )
    options = "schema=tenure, queues=default, processes=2, concurrency=7, schedules=no"
    assert f"{url.path}, {options}" in works
    assert "@" not in works
    assert re.search(r"INFO worker anna stopped after \d+ s$", ended)


def test_the_probe_sees_a_worker_come_and_go(tenure: Command) -> None:
    """Shows R31."""
    (tenure.directory / "jobs.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, "-m", "tenure", "worker", "jobs:app", "--name", "anna"],
        cwd=tenure.directory,
        env=tenure.environment(),
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            probe = ("probe", "--name", "anna")
            assert wait_for(lambda: tenure(*probe).code == Exit.DONE, seconds=30)
        finally:
            process.terminate()
        assert process.wait(timeout=60) == Exit.DONE
    assert tenure(*probe).code == Exit.FAILED


def test_missing_app_is_reported(tenure: Command) -> None:
    ended = tenure("worker", "nowhere:app")
    assert ended.code == Exit.FAILED
    assert "there is no module 'nowhere'" in ended.err
    assert "Traceback" not in ended.err
