"""The page on middleware with the real Sentry and structlog, under a real worker: in a thread, on
the loop and in a process of its own. What Sentry would send is written to a file instead."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import Command

if TYPE_CHECKING:
    from support.store import Database

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "middleware.md"
# The page's own init reads a DSN from the environment and would send over the network.
CHECKED = """
import json, os
import sentry_sdk, structlog
from sentry_sdk.transport import Transport

class ToFile(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            with open("sentry.jsonl", "a") as file:
                file.write(json.dumps(event | {"pid": os.getpid()}, default=str) + "\\n")

init = sentry_sdk.init
sentry_sdk.init = lambda: init(
    "https://key@localhost/1", transport=ToFile, auto_enabling_integrations=False
)
import shop
from shop import app, log
structlog.configure(logger_factory=structlog.WriteLoggerFactory(open("log.jsonl", "a", 1)))

def fail(kind):
    log.info("about to fail")
    raise ValueError(kind)

@app.task(name="thread", max_attempts=2, backoff=shop.Backoff(base=shop.timedelta(0)))
def thread(): fail("thread")

@app.task(name="loop", max_attempts=1)
async def loop(): fail("loop")

@app.task(name="process", max_attempts=1, process=True)
def process(): fail("process")

@app.task(name="aprocess", max_attempts=1, process=True)
async def aprocess(): fail("aprocess")

@app.task(name="snoozes")
def snoozes():
    if not os.path.exists("snoozed"):
        open("snoozed", "w").close()
        raise shop.Snooze(0)
"""
PATIENCE = 200
TASKS = ["thread", "loop", "process", "aprocess", "snoozes"]
ENQUEUE = """
import sys
import checked
from structlog.contextvars import bound_contextvars
for task in sys.argv[1:]:
    with bound_contextvars(request=f"r-{task}"):
        getattr(checked, task).enqueue()
"""


def lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON, line by line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def ran(db: Database, tmp_path: Path) -> Path:
    """Where a worker of the page's app has run jobs that fail, in every kind of handler."""
    block = re.compile(r"^```python\n# shop\.py.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
    blocks = block.findall(PAGE.read_text())
    assert len(blocks) == 8
    imports = "from datetime import timedelta\nfrom tenure import Backoff\n"
    (tmp_path / "shop.py").write_text(imports + "\n".join(blocks))
    (tmp_path / "checked.py").write_text(CHECKED)
    tenure = Command(tmp_path, url=db.url)
    for command in (["-c", ENQUEUE, *TASKS], ["-m", "tenure", "worker", "checked:app", "--drain"]):
        ended = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=tenure.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
    return tmp_path


@pytest.mark.timeout(2 * PATIENCE)
def test_errors_reach_sentry_and_log_lines_name_their_job_in_every_kind_of_handler(
    ran: Path,
) -> None:
    reported = {
        (event["tags"]["task"], int(event["tags"]["attempt"])): event
        for event in lines(ran / "sentry.jsonl")
    }
    logged = {
        (line["task"], line["attempt"]): line
        for line in lines(ran / "log.jsonl")
        if line["event"] == "about to fail"
    }
    expected = {("thread", 1), ("thread", 2), ("loop", 1), ("process", 1), ("aprocess", 1)}
    assert len(lines(ran / "sentry.jsonl")) == len(expected)
    assert set(reported) == set(logged) == expected
    for (task, _), event in reported.items():
        [error] = event["exception"]["values"]
        assert (error["type"], error["value"]) == ("ValueError", task)
        assert event["transaction"] == task
        job_id = TASKS.index(task) + 1
        assert int(event["tags"]["job_id"]) == job_id
    for (task, _), line in logged.items():
        assert line["job_id"] == TASKS.index(task) + 1
        assert line["request"] == f"r-{task}"
    apart = {reported["process", 1]["pid"], reported["aprocess", 1]["pid"]}
    assert reported["thread", 1]["pid"] not in apart
