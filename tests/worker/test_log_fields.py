"""Which job a record in the log is about is in its fields."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tenure.worker.log_format import JsonFormatter
from tests.worker.acts import end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure import Tenure
    from tenure._model.job import JobRow

log = logging.getLogger("shop")
PAGE = Path(__file__).parents[2] / "docs/reference/logs.md"
NAMES = ("job", "attempt", "token", "queue", "task")


class Kept(logging.Handler):
    """Keeps the records that reach the root logger."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def fields(self, words: str) -> list[Any]:
        """The fields of the one record that says this."""
        [found] = [record for record in self.records if words in record.getMessage()]
        return [getattr(found, name, None) for name in NAMES]


@pytest.fixture
def kept() -> Iterator[Kept]:
    """Was there before the worker, as handlers are that a program configures."""
    kept, root = Kept(), logging.getLogger()
    root.addHandler(kept)
    yield kept
    root.removeHandler(kept)


async def expected(app: Tenure, row: JobRow) -> list[Any]:
    [attempt] = await app.admin.jobs.aattempts(row.id)
    return [row.id, 1, attempt.token, row.queue, row.task]


async def test_what_a_handler_logs_says_which_job_it_was(app: Tenure, kept: Kept) -> None:
    @app.task(queue="mail", name="plain")
    def plain() -> None:
        log.warning("in a thread")

    @app.task(queue="mail", name="awaiting")
    async def awaiting() -> None:
        log.warning("on the loop")
        await asyncio.to_thread(log.warning, "aside")

    async with app.run():
        rows = [await end(await task.aenqueue()) for task in (plain, awaiting)]
        log.warning("outside")
        assert kept.fields("in a thread") == await expected(app, rows[0])
        assert kept.fields("on the loop") == await expected(app, rows[1])
        assert kept.fields("aside") == await expected(app, rows[1])
    assert kept.fields("outside") == [None] * 5


async def test_a_field_of_the_handlers_own_stays_its_own(app: Tenure, kept: Kept) -> None:
    @app.task(max_attempts=1)
    def owns() -> None:
        log.warning("mine", extra={"job": "cleaning", "task": 7})

    async with app.run():
        handle = await owns.aenqueue()
        assert (await end(handle)).state == "completed"
    fields = kept.fields("mine")
    assert (fields[0], fields[1], fields[4]) == ("cleaning", 1, 7)


async def test_what_the_worker_says_of_a_job_has_its_fields(app: Tenure, kept: Kept) -> None:
    @app.task(max_attempts=1)
    def fails() -> None:
        raise ValueError("no")

    @app.task(max_attempts=1, timeout=0.2)
    async def hangs() -> None:
        await asyncio.Event().wait()

    async with app.run():
        for task, words in (
            (fails, "attempt 1 of 1 failed: Val"),
            (hangs, "timed out, stopping it"),
        ):
            row = await end(await task.aenqueue())
            assert kept.fields(words) == await expected(app, row)


JOBS = """
import logging
from tenure import Tenure

app = Tenure()
log = logging.getLogger("shop")

@app.task(name="here", queue="mail")
def here():
    log.info("two\\nlines", extra={"order": 5, "odd": {1, 2}})

@app.task(name="apart", queue="mail", process=True, max_attempts=1)
def apart():
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("cannot")
        raise
"""


async def test_a_worker_writes_one_object_per_line(db: Database, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    answer = ""
    for command in (
        ["-c", "import jobs; jobs.here.enqueue(); jobs.apart.enqueue()"],
        ["-m", "tenure", "worker", "jobs:app", "--drain", "--log-format", "json"],
    ):
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, *command],
            cwd=tmp_path,
            env=os.environ | {"TENURE_DATABASE_URL": db.url, "TENURE_RUN_DIR": str(tmp_path / "r")},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        answer = done.stderr
    lines = [json.loads(line) for line in answer.splitlines()]
    here = next(line for line in lines if line["message"] == "two\nlines")
    assert (here["level"], here["logger"], here["task"]) == ("info", "shop", "here")
    assert (here["queue"], here["attempt"], here["order"], here["odd"]) == ("mail", 1, 5, "{1, 2}")
    assert re.fullmatch(r"20\d\d-.*T.*\.\d{3}\+00:00", here["time"])
    cannot = next(line for line in lines if line["message"] == "cannot")
    assert cannot["task"] == "apart"
    assert "ZeroDivisionError" in cannot["exception"]
    failed = next(line for line in lines if "attempt 1 of 1 failed" in line["message"])
    assert [failed[name] for name in NAMES] == [cannot[name] for name in NAMES]


def record(**fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("shop", logging.INFO, "x.py", 1, "said %s", ("so",), None)
    vars(made).update(fields)
    return made


def test_value_that_is_not_json_is_written_as_text() -> None:
    ring: list[Any] = []
    ring.append(ring)
    line = json.loads(JsonFormatter().format(record(ring=ring, nan=float("nan"), message="taken")))
    assert line["ring"].startswith("[[")
    assert (line["nan"], line["message"]) == ("nan", "said so")
    secrets = {"password": "hunter2", "odd": {"password=hunter2"}}
    odd = json.loads(JsonFormatter().format(record(**secrets)))
    assert "hunter2" not in str(odd)
    assert json.loads(JsonFormatter().format(record(stack_info="Stack:\n  here")))["stack"]


def test_every_field_is_documented() -> None:
    page = PAGE.read_text()
    of_a_job, as_json = page.split("## JSON format")
    assert tuple(re.findall(r"^\| `(\w+)` \|", of_a_job, re.MULTILINE)) == NAMES
    error = ValueError("no")
    made = record(stack_info="here")
    made.exc_info = (ValueError, error, None)
    written = list(json.loads(JsonFormatter().format(made)))
    assert re.findall(r"^\| `(\w+)` \|", as_json, re.MULTILINE) == written
