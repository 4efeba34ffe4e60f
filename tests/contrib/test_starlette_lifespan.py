"""A program from its start to its end: what it needs, what runs in it, what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from tenure import Tenure
from tenure._store.postgres import pools
from tenure.config import DEFAULTS
from tenure.contrib.starlette import lifespan
from tenure.errors import InvalidValue, SchemaTooOld, Unreachable
from tenure.types import WorkerState
from tests.contrib.starlettes import eventually, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE = 30.0


def connections(url: str) -> int:
    """How many connections of ours the server has."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tenure%' "
            "AND datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])


async def until_no_connections(url: str) -> None:
    """The server hears of an end a moment after it."""
    await eventually(lambda: asyncio.to_thread(connections, url), 0)


async def test_a_program_does_not_start_before_its_database_is_migrated(
    empty_database: str,
) -> None:
    program = FastAPI(lifespan=lifespan(Tenure(empty_database)))
    with pytest.raises(SchemaTooOld, match="run: tenure db migrate"):
        async with started(program):
            pass
    await until_no_connections(empty_database)


async def test_a_program_does_not_start_while_its_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "_WAIT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    program = FastAPI(lifespan=lifespan(Tenure(f"postgresql://ada@127.0.0.1:{port}/shop")))
    with pytest.raises(Unreachable, match="check that the server runs"):
        async with started(program):
            pass


async def test_a_program_can_work_and_gives_up_its_connections_and_its_place_at_its_end(
    app: Tenure, url: str
) -> None:
    """One worker in the program's own process, a part of R33."""

    @app.task(queue="mail")
    async def hello(name: str) -> str:
        return f"Hello {name} from {os.getpid()}"

    async with started(FastAPI(lifespan=lifespan(app, work=True, queues=["mail"], name="web"))):
        handle = await hello.aenqueue("Ada")
        hello.enqueue("Grace")
        assert (await handle.wait_async(DEADLINE)).result == f"Hello Ada from {os.getpid()}"
        assert connections(url) > 0
    await until_no_connections(url)
    [worker] = app.admin.workers.list()
    assert (worker.name, worker.queues, worker.state) == ("web", ["mail"], WorkerState.OFFLINE)


async def test_program_runs_jobs_only_on_request(app: Tenure) -> None:
    async with started(Starlette(lifespan=lifespan(app))):
        assert await app.admin.workers.alist() == []


async def test_a_program_can_be_started_again(app: Tenure, url: str) -> None:
    """As test clients do, each on an event loop of its own."""

    @app.task
    def hello() -> str:
        return "hello"

    program = FastAPI(lifespan=lifespan(app, work=True))

    async def once() -> str:
        async with started(program):
            return (await (await hello.aenqueue()).wait_async(DEADLINE)).result

    for _ in range(2):
        assert await asyncio.to_thread(asyncio.run, once()) == "hello"
    await until_no_connections(url)


async def test_it_can_be_entered_in_a_lifespan_of_ones_own(app: Tenure, url: str) -> None:
    jobs = lifespan(app)
    order: list[str] = []

    @asynccontextmanager
    async def mine(program: FastAPI) -> AsyncIterator[dict[str, str]]:
        async with jobs(program):
            await app.admin.schema.astatus()
            order.append("start")
            yield {"mine": "kept"}
            order.append("end")

    async with started(FastAPI(lifespan=mine)):
        assert connections(url) == 1
    assert order == ["start", "end"]
    await until_no_connections(url)


async def test_connections_are_closed_when_the_program_ends_by_an_error(
    app: Tenure, url: str
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with started(FastAPI(lifespan=lifespan(app, work=True))):
            raise ZeroDivisionError
    await until_no_connections(url)


async def test_a_working_program_knows_the_tasks_of_its_imports(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `tenure worker` does: also those, and the queues, that no route has imported."""
    (tmp_path / "held_back.py").write_text(
        "from tests.contrib import test_starlette_lifespan as here\n"
        "@here.LATE[0].task(name='late', queue='late')\n"
        "def late() -> str:\n"
        "    return 'known'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    app = Tenure(url, imports=["held_back"], defaults=DEFAULTS.scaled(0.1))
    LATE.append(app)
    monkeypatch.setitem(sys.modules, "tests.contrib.test_starlette_lifespan", sys.modules[__name__])
    try:
        async with started(FastAPI(lifespan=lifespan(app, work=True))):
            late = sys.modules["held_back"].late
            assert (await (await late.aenqueue()).wait_async(DEADLINE)).result == "known"
    finally:
        LATE.clear()
        sys.modules.pop("held_back", None)


LATE: list[Tenure] = []


def test_options_of_a_worker_that_is_not_there_are_refused(app: Tenure) -> None:
    with pytest.raises(InvalidValue, match="must come with work=True"):
        lifespan(app, queues=["mail"])
