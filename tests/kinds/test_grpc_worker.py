"""gRPC work by a real worker process: from the enqueue to the server and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import wait_for
from support.workers import Worker
from tenure import Tenure
from tenure._model.job import State
from tenure.config import DEFAULTS
from tests.kinds import grpc_stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.store import Database
    from tests.kinds.grpc_stage import Stage

APP = "tests.kinds.grpc_app:app"
PLACE = "shop.Orders/Place"
SECRET = "s3cr3t-of-the-shop"  # noqa: S105 - made up


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with grpc_stage.started(tmp_path) as stage:
        yield stage


@pytest.fixture
def app(db: Database) -> Iterator[Tenure]:
    app = Tenure(db.url, defaults=DEFAULTS.scaled(0.1))
    yield app
    app.close()


def worker(db: Database, stage: Stage, **options: object) -> Worker:
    settings = stage.settings(secrets={"shop": [stage.target("tls")]})
    environment = {"TENURE_KINDS_GRPC": json.dumps(settings), "TENURE_SECRET_SHOP": SECRET}
    return Worker(APP, db.url, stage.directory, environment, **options)


def test_a_worker_process_makes_calls_and_survives_what_ends_it(
    app: Tenure, db: Database, stage: Stage
) -> None:
    """Success, a retry, a dead letter, and a worker that is killed in the middle. Shows R29."""
    target = stage.target("tls")
    bearer: Any = {"authorization": {"secret": "shop", "prefix": "Bearer "}}
    tea = app.grpc(target, PLACE, {"item": "tea", "number": 7}, metadata=bearer).enqueue()
    again = app.grpc(target, PLACE, {"item": "once"}).using(key="once").enqueue()
    broken = app.grpc(target, PLACE, {"item": "status:NOT_FOUND"}).enqueue()
    streaming = app.grpc(target, "shop.Orders/Watch").enqueue()
    with worker(db, stage, kinds="grpc") as first:
        rows = [handle.wait(30).get() for handle in (tea, again, broken, streaming)]
        slow = app.grpc(target, PLACE, {"item": "slow"}).enqueue()
        assert stage.has_read(item="slow")
        log = first.log()
    with worker(db, stage, kinds="grpc") as second:
        assert wait_for(lambda: len(stage.requests(item="slow")) == 2, 30)
        log += second.log()
        app.admin.jobs.cancel([slow.id], grpc_stage.BY)
        ended = slow.wait(30).get()

    states = [row.state for row in rows if row is not None]
    assert states == [State.COMPLETED, State.COMPLETED, State.FAILED, State.FAILED]
    assert rows[0] is not None
    assert rows[0].result["response"]["text"] == "tea placed"
    assert stage.requests(item="tea")[0]["metadata"]["authorization"] == f"Bearer {SECRET}"
    assert ended is not None
    assert ended.state is State.CANCELLED
    for item in ("once", "slow"):
        calls = [request["metadata"] for request in stage.requests(item=item)]
        assert len(calls) == 2
        assert len({call["idempotency-key"] for call in calls}) == 1
        assert int(calls[1]["tenure-fence"]) > int(calls[0]["tenure-fence"])
    assert SECRET not in log
    stored = "".join(map(str, db_texts(app, [tea.id, again.id, broken.id, streaming.id])))
    assert SECRET not in stored


def db_texts(app: Tenure, ids: list[Any]) -> list[Any]:
    """What is stored of these jobs and their attempts."""
    return [
        text
        for job_id in ids
        for text in (app.admin.jobs.get(job_id), app.admin.jobs.attempts(job_id))
    ]


def test_the_command_line_enqueues_a_call(app: Tenure, db: Database, stage: Stage) -> None:
    environment = {**os.environ, "TENURE_DATABASE_URL": db.url}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tenure", *words],
            env=environment,
            cwd=stage.directory,
            capture_output=True,
            text=True,
            check=False,
        )

    call = f"{stage.target('tls')}/{PLACE}"
    refused = run("job", "enqueue", "--grpc", call)
    run("setting", "set", "enabled_kinds", '["grpc"]')
    done = run("job", "enqueue", "--grpc", call, "--args", '{"message": {"item": "tea"}}', "--json")
    assert done.returncode == 0, done.stderr
    job_id = json.loads(done.stdout)["id"]
    with worker(db, stage, kinds="grpc"):
        assert stage.has_read(within=30, item="tea")

    assert refused.returncode != 0
    assert "enabled_kinds" in refused.stderr
    assert job_id


def test_a_worker_with_an_invalid_configuration_says_so_and_ends(
    db: Database, stage: Stage
) -> None:
    environment = {"TENURE_KINDS_GRPC": '{"alow": []}'}
    with Worker(APP, db.url, stage.directory, environment, None, kinds="grpc") as broken:
        assert broken.wait(30) != 0
        assert "kinds.grpc has no setting 'alow'" in broken.log()
