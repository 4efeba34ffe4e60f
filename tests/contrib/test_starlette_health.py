"""What the health routes say, while all is well and while it is not."""

from __future__ import annotations

import asyncio
import logging
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from support.cluster import Cluster
from support.proxy import Proxy
from support.store import install
from tenure import Tenure
from tenure._runtime import embedded
from tenure._store.postgres import pools
from tenure.admin import By
from tenure.config import DEFAULTS
from tenure.contrib import starlette
from tenure.contrib.starlette import health, lifespan
from tests.contrib.starlettes import asking, eventually, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx

    from tenure.admin import Admin

DEADLINE = 60.0
WELL = {"status": "ok", "database": "ok", "schema": "ok"}


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A server of this file's own, to be stopped."""
    with Cluster(pytestconfig.getoption("--postgres")) as cluster:
        install(cluster.url())
        yield cluster


@pytest.fixture
async def closing() -> AsyncIterator[list[Tenure]]:
    """Apps to be closed at the end."""
    apps: list[Tenure] = []
    yield apps
    for app in apps:
        await app.aclose()


def program(app: Tenure, *, work: bool = False) -> Starlette:
    return Starlette(routes=[Mount("/health", app=health(app))], lifespan=lifespan(app, work=work))


async def ask(client: httpx.AsyncClient, what: str = "ready") -> tuple[int, dict[str, Any]]:
    answer = await client.get(f"/health/{what}")
    assert answer.headers["cache-control"] == "no-store"
    return answer.status_code, answer.json()


async def until(client: httpx.AsyncClient, code: int, what: str = "ready") -> dict[str, Any]:
    """Return the answer once it has this code."""
    answers: list[dict[str, Any]] = []

    async def answered() -> int:
        status, answer = await ask(client, what)
        answers.append(answer)
        return status

    await eventually(answered, code)
    return answers[-1]


async def test_all_is_well(app: Tenure) -> None:
    async with started(program(app)) as client:
        assert await ask(client) == (200, WELL)
        assert await ask(client, "live") == (200, {"status": "ok"})
        assert (await client.head("/health/ready")).status_code == 200
        assert (await client.post("/health/ready")).status_code == 405


async def test_schema_mismatch_is_reported_without_versions(
    app: Tenure, url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer release has migrated the database under a program that still runs. The log says
    which, once."""
    monkeypatch.setattr(starlette, "_FRESH", 0.0)
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO tenure.schema_version VALUES (99, 'next', true, now())")
    async with asking(program(app)) as client:
        misfit = {"status": "unavailable", "database": "ok", "schema": "misfit"}
        assert [await ask(client) for _ in range(3)] == 3 * [(503, misfit)]
        assert await ask(client, "live") == (200, {"status": "ok"})
    [record] = caplog.records
    assert "upgrade tenure" in record.getMessage()


async def test_refusing_database_is_reported_without_the_reason(
    app: Tenure, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE tenure.schema_version RENAME COLUMN version TO other")
    async with asking(program(app)) as client:
        assert await ask(client) == (503, {"status": "unavailable", "database": "refusing"})
    assert "version" in caplog.text


@pytest.mark.parametrize("work", [False, True], ids=["serving", "working"])
async def test_a_program_is_not_ready_while_its_database_is_away_and_is_again_by_itself(
    server: Cluster, caplog: pytest.LogCaptureFixture, *, work: bool
) -> None:
    caplog.set_level(logging.INFO, "tenure")
    worker = {"worker": "active"} if work else {}
    async with started(program(Tenure(server.url()), work=work)) as client:
        assert await ask(client) == (200, WELL | worker)
        server.kill()
        answer = await until(client, 503)
        assert answer.pop("database") in ("unreachable", "slow")
        assert answer == {"status": "unavailable", **worker}
        assert await ask(client, "live") == (200, {"status": "ok", **worker})
        server.start()
        assert await until(client, 200) == WELL | worker
    output = [text for record in caplog.records if "health: " in (text := record.getMessage())]
    assert output[-1] == "health: ready again"
    assert 2 <= len(output) <= 3


async def test_an_outage_is_logged_once_in_each_of_its_forms(
    closing: list[Tenure], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look is slow first and unreachable then; a night of them fills no disk."""
    for module, name, value in ((pools, "_WAIT", 0.3), (starlette, "_DEADLINE", 0.05)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(starlette, "_FRESH", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    app = Tenure(f"postgresql://ada:secret@127.0.0.1:{port}/shop")
    closing.append(app)
    seen: list[str] = []

    async def changes() -> bool:
        how = (await ask(client))[1]["database"]
        if seen[-1:] != [how]:
            seen.append(how)
        return seen[:4] == ["slow", "unreachable", "slow", "unreachable"]

    async with asking(program(app)) as client:
        await eventually(changes, wanted=True)
    output = [text for record in caplog.records if "health: " in (text := record.getMessage())]
    assert len(output) == 2
    assert "secret" not in caplog.text


async def test_a_database_that_does_not_answer_is_not_waited_for(
    url: str, closing: list[Tenure]
) -> None:
    """Nor asked again while a look is under way; the deadline holds for each caller."""
    with Proxy(url) as proxy:
        app = Tenure(proxy.url)
        closing.append(app)
        async with asking(program(app)) as client:
            assert await ask(client) == (200, WELL)
            proxy.cut()
            # Two seconds, and room for a busy machine; a statement's own deadline is fifteen.
            began = monotonic()
            await until(client, 503)
            assert monotonic() - began < 10
            answers = await asyncio.gather(*(ask(client) for _ in range(20)))
            assert {code for code, _ in answers} == {503}
            proxy.restore()
            assert await until(client, 200) == WELL


async def test_many_who_ask_at_once_ask_the_database_once(url: str, closing: list[Tenure]) -> None:
    class Counted(Tenure):
        looks = 0

        @property
        def admin(self) -> Admin:
            self.looks += 1
            return super().admin

    app = Counted(url)
    closing.append(app)
    async with asking(program(app)) as client:
        began = monotonic()
        answers = await asyncio.gather(*(ask(client) for _ in range(100)))
        answers += await asyncio.gather(*(ask(client) for _ in range(100)))
        assert {code for code, _ in answers} == {200}
        assert 1 <= app.looks <= 1 + (monotonic() - began)


async def test_worker_of_the_process_is_shown(app: Tenure) -> None:
    async with started(program(app, work=True)) as client:
        assert await ask(client) == (200, {**WELL, "worker": "active"})
        assert await ask(client, "live") == (200, {"status": "ok", "worker": "active"})

        async def reported() -> str:
            for worker in await app.admin.workers.alist():
                await app.admin.workers.adrain(worker.id, By("ada"))
            return str((await ask(client))[1]["worker"])

        await eventually(reported, "draining")
        assert await ask(client) == (200, {**WELL, "worker": "draining"})


async def test_a_process_whose_service_thread_has_died_is_to_be_replaced(app: Tenure) -> None:
    """No thread renews leases in it any more, and only a new process will."""
    async with started(program(app, work=True)) as client:
        [core] = embedded._RUNNING[app]
        assert core._heartbeat is not None
        await core._service_thread.stop(core._heartbeat.sign_off)
        failed = {"status": "unavailable", "worker": "failed"}
        assert await until(client, 503, "live") == failed
        assert await until(client, 503) == {**WELL, **failed}
        # No other loop could close them.
        links = core._service_thread._links
        assert links
        assert [link._connection for link in links] == [None] * len(links)  # type: ignore[attr-defined]


async def test_it_works_on_one_event_loop_after_another(url: str) -> None:
    app = Tenure(url, defaults=DEFAULTS.scaled(0.1))
    served = program(app)

    async def once() -> int:
        async with started(served) as client:
            return (await ask(client))[0]

    for _ in range(2):
        assert await asyncio.to_thread(asyncio.run, once()) == 200
