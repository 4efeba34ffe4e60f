"""Suspects over HTTP: given only to a worker that holds nothing else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.admin import By
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue
from tenure.gateway import Remote, WorkerInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tenure._model.ids import JobId
    from tenure.gateway import AcquireResult

LATER = datetime(2100, 1, 1, tzinfo=UTC)
ME = WorkerInfo(name="here", language="none", slots=2)


@pytest.fixture
async def app(db: Database) -> AsyncIterator[Tenure]:
    app = Tenure(db.url, defaults=DEFAULTS)
    yield app
    app.close()
    await app.aclose()


async def suspect(app: Tenure, db: Database) -> JobId:
    """A job that a worker of its own was lost with, twice."""
    answer = await app.admin.jobs.aenqueue("task", {}, By("ops"), run_at=LATER)
    await db.fetch(
        "UPDATE tenure.job SET suspect = true, worker_losses = 2, deaths = 2, run_at = now()"
    )
    return answer.id


@pytest.fixture
async def remote(app: Tenure) -> AsyncIterator[Remote]:
    remote = Remote(app, name="server")
    async with remote.running():
        yield remote


async def acquire(
    remote: Remote, holder: str, holding: int | None, wait: float = 0
) -> AcquireResult:
    seconds = timedelta(seconds=wait)
    return await remote.acquire(holder, ["default"], ME, holding=holding, wait=seconds)


@pytest.mark.parametrize(("holding", "given"), [(0, True), (1, False), (7, False), (None, True)])
async def test_suspects_are_for_those_who_hold_nothing_or_do_not_say(
    app: Tenure, remote: Remote, db: Database, holding: int | None, *, given: bool
) -> None:
    job_id = await suspect(app, db)
    answer = await acquire(remote, "me", holding)
    assert [work.job.id for work in answer.work] == ([job_id] if given else [])
    assert all(work.suspect for work in answer.work)


async def test_a_suspect_is_known_to_have_begun_when_it_is_handed_out(
    app: Tenure, remote: Remote, db: Database
) -> None:
    """So that the loss of its worker counts. Shows R7."""
    await suspect(app, db)
    await acquire(remote, "me", 0)
    [row] = await db.fetch("SELECT renewals FROM tenure.job")
    assert row["renewals"] == 0


async def test_one_that_holds_nothing_gets_what_the_one_before_it_may_not_have(
    app: Tenure, remote: Remote, db: Database
) -> None:
    """It waits for less time, and is woken all the same."""
    busy = asyncio.create_task(acquire(remote, "busy", 1, wait=20))
    await asyncio.sleep(0)
    free = asyncio.create_task(acquire(remote, "free", 0, wait=20))
    await asyncio.sleep(0)
    job_id = await suspect(app, db)
    async with asyncio.timeout(15):
        [work] = (await free).work
    assert work.job.id == job_id
    assert not busy.done()
    remote.release_all()
    assert (await busy).work == []


async def test_a_worker_cannot_hold_less_than_nothing(remote: Remote) -> None:
    with pytest.raises(InvalidValue, match="holding must be 0 or more, got -1"):
        await acquire(remote, "me", -1)
