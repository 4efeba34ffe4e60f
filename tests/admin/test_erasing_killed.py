"""A process that erases is killed in the middle: another one continues, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from support.binaries import ROOT
from support.canaries import columns_with
from support.race_helpers import BY
from tenure._model.job import NewJob
from tenure.types import OperationState

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

CANARY = "zebra7041"
_RUN = """
import sys, time
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore
with connect(sys.argv[1]) as connection:
    while True:
        Session(connection).run(PostgresStore().operations.run_chunk())
"""


def eraser(url: str) -> subprocess.Popen[bytes]:
    """A process that does what a worker's service does, without pauses."""
    return subprocess.Popen([sys.executable, "-c", _RUN, url], cwd=ROOT)


def until(admin: Admin, operation_id: int, done: int) -> None:
    deadline = time.monotonic() + 30
    while (row := admin.operations.get(operation_id)) and row.done < done:
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_another_process_continues_after_a_kill(db: Database, admin: Admin) -> None:
    meta = {"tags": [f"customer:{CANARY}"]}
    jobs = [
        NewJob("work", args={"name": CANARY}, meta=meta, key=f"{CANARY}{n}") for n in range(400)
    ]
    await db.run(db.real.jobs.enqueue(jobs))
    await db.run(db.real.jobs.enqueue([NewJob("work", args={"name": "quagga"})]))
    started = admin.erase(f"tag:customer:{CANARY}", BY, rate=200).operation
    with eraser(db.url) as first:
        until(admin, started.id, 1)
        first.kill()
    row = admin.operations.get(started.id)
    assert row is not None
    assert 0 < row.done < row.total == 400
    [left] = await db.fetch("SELECT count(*) AS jobs FROM tenure.job WHERE key IS NOT NULL")
    assert left["jobs"] == row.total - row.done
    with eraser(db.url) as second:
        until(admin, started.id, 400)
        second.kill()
    ended = admin.operations.get(started.id)
    assert ended is not None
    assert (ended.state, ended.outcomes) == (OperationState.DONE, {"erased": 400})
    assert columns_with(db.url, CANARY) == set()
    assert columns_with(db.url, "quagga") == {("job", "args")}
