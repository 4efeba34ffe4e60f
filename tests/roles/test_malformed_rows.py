"""One malformed row of each kind, from a producer. `just prove malformed` inserts all of them, next
to a worker and a server that are processes of their own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.malformed_rows import (
    PATHS,
    QUEUE,
    UNREADABLE,
    create_app,
    insert,
    insert_one,
    kinds,
    live,
    read_ends,
)
from support.processes import wait_for
from tenure import Tenure
from tenure.admin import By
from tenure.server import create
from tenure.types import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.roles import Parties

URL = "http://127.0.0.1"
WITHIN = 60.0


@asynccontextmanager
async def signed_in(parties: Parties) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server in this process, with a session and a token."""
    app = Tenure(parties.as_role("server"))
    api = create(app)
    made = await app.admin.tokens.acreate("all", By("ana"), scopes=list(Scope))
    transport: Any = httpx.ASGITransport(api)
    async with (
        api.router.lifespan_context(api),
        httpx.AsyncClient(transport=transport, base_url=URL, follow_redirects=True) as caller,
    ):
        form, origin = {"token": made.secret}, {"Origin": URL}
        (await caller.post("/sign-in", data=form, headers=origin)).raise_for_status()
        caller.headers["Authorization"] = f"Bearer {made.secret}"
        yield caller
    await app.aclose()


async def unanswered(caller: httpx.AsyncClient) -> dict[str, int]:
    found = {path: (await caller.get(path)).status_code for path in PATHS}
    return {path: status for path, status in found.items() if status != httpx.codes.OK}


async def test_malformed_rows_are_refused_or_dead_letters_while_good_jobs_complete(
    parties: Parties,
) -> None:
    """Shows R16. Every row goes before the good jobs of its queue."""
    found = insert(parties, [rows[0] for rows in kinds().values()])
    worker = create_app(parties.as_role("worker"))
    async with signed_in(parties) as caller:
        assert await unanswered(caller) == {}
        async with worker.run(queues=[QUEUE], schedules=False):
            assert await asyncio.to_thread(wait_for, lambda: not live(parties), WITHIN)
        assert await unanswered(caller) == {}
        answer = await caller.get(f"/v1/jobs/{min(found.accepted)}")
        assert answer.json()["done_reason"] == UNREADABLE
    await worker.aclose()
    read_ends(parties, found)
    assert found.not_completed == set()
    assert found.not_dead_letters == {}


@pytest.mark.parametrize("at", ["0002-01-01", "1969-12-31", "9999-12-31"])
async def test_a_remote_worker_runs_a_job_of_any_year(parties: Parties, at: str) -> None:
    """Every time that the table accepts can be read, also one before 1970."""
    with parties.connected("producer") as producer:
        job_id = insert_one(producer, {"queue": "years", "created_at": at})
    async with signed_in(parties) as caller:
        wanted = {"queues": ["years"], "worker": {"name": "w"}, "count": 1, "wait": 0}
        answer = await caller.post("/v1/leases:acquire", json=wanted)
        [work] = answer.json()["jobs"]
        assert work["id"] == str(job_id)
        done = await caller.post("/v1/leases:complete", json={"lease": work["lease"]})
        done.raise_for_status()
