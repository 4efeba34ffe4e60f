"""`tenure job watch`: a job followed to its end, by people and by programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from support.race_helpers import ended, enqueued, held
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tests.cli.conftest import Command


@asynccontextmanager
async def watching(
    tenure: Command, job_id: int, *options: str
) -> AsyncIterator[subprocess.Popen[str]]:
    """The command, while it watches."""
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-m", "tenure", "job", "watch", str(job_id), *options],
        cwd=tenure.directory,
        env=tenure.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


async def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return await asyncio.to_thread(process.stdout.readline)


async def test_a_job_is_followed_to_its_end(db: Database, tenure: Command) -> None:
    """Shows R36."""
    [lease] = await held(db)
    async with watching(tenure, lease.job_id, "--json") as process:
        assert json.loads(await line(process))["state"] == "running"
        await db.run(db.store.leases.progress(lease, done=3, total=9, message="on the way"))
        assert json.loads(await line(process))["progress"]["message"] == "on the way"
        await db.run(db.store.settlement.settle([ended(lease)]))
        assert json.loads(await line(process))["state"] == "completed"
        assert await asyncio.to_thread(process.wait, 30) == Exit.DONE
    again = tenure("job", "watch", lease.job_id)
    assert again.code == Exit.DONE
    assert "completed, attempt 1 of" in again.out
    assert "3 of 9, on the way, worker_done" in again.out


async def test_a_line_has_its_own_time_and_not_that_of_the_claim(
    db: Database, tenure: Command
) -> None:
    [lease] = await held(db)
    await db.fetch("UPDATE tenure.job SET claimed_at = claimed_at - interval '1 hour'")
    started_at = datetime.now(UTC).replace(microsecond=0)
    async with watching(tenure, lease.job_id) as process:
        times = [(await line(process)).partition("Z, ")[0]]
        await asyncio.sleep(1.0)
        await db.run(db.store.leases.progress(lease, done=3, total=9))
        times.append((await line(process)).partition("Z, ")[0])
    first, second = (datetime.fromisoformat(f"{time}+00:00") for time in times)
    assert started_at <= first < second


async def test_who_stops_watching_does_not_stop_the_job(db: Database, tenure: Command) -> None:
    [job_id] = await enqueued(db)
    async with watching(tenure, job_id) as process:
        assert "queued" in await line(process)
        os.kill(process.pid, signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 30) == Exit.INTERRUPTED
        assert process.stderr is not None
        assert f"tenure job show {job_id}" in process.stderr.read()


async def test_a_job_that_did_not_complete_and_one_that_is_not_there(
    db: Database, tenure: Command
) -> None:
    [job_id] = await enqueued(db)
    assert tenure("job", "cancel", job_id).code == Exit.DONE
    watched = tenure("job", "watch", job_id)
    assert watched.code == Exit.FAILED
    assert "cancelled, requested" in watched.out
    assert tenure("job", "watch", 4711).code == Exit.NOT_FOUND
