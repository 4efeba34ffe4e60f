"""The example shop, asked in this process and served by a real uvicorn beside a real worker."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from support.processes import wait_for
from support.workers import Worker, soon
from tests.contrib.starlettes import SHOP, Uvicorn, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = ["tenure db migrate && python main.py", "tenure worker main:tasks", "uvicorn main:api"]


def stock(url: str) -> None:
    """What the README has a reader do once."""
    for words in (["-m", "tenure", "db", "migrate"], ["main.py"]):
        subprocess.run(
            [sys.executable, *words], cwd=SHOP, env=os.environ | {"DATABASE_URL": url}, check=True
        )


def look(url: str) -> tuple[int, int, int]:
    """How many orders there are, how many are paid, and how many jobs were ever made."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*), count(paid_at), (SELECT count(*) FROM tenure.job) "
            "+ (SELECT count(*) FROM tenure.job_archive) FROM orders"
        ).fetchone()
    assert found is not None
    return found[0], found[1], found[2]


@pytest.fixture
def shop(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The example's module, on a database of its own."""
    stock(empty_database)
    monkeypatch.setenv("DATABASE_URL", empty_database)
    monkeypatch.syspath_prepend(SHOP)
    monkeypatch.delitem(sys.modules, "main", raising=False)
    yield importlib.import_module("main")
    del sys.modules["main"]


def test_the_readme_has_six_commands_and_they_are_those_that_are_run_here() -> None:
    text = (SHOP / "README.md").read_text()
    [block] = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.removesuffix(" &") for line in block.splitlines()]
    assert len(lines) <= 6
    assert lines[2:5] == COMMANDS


async def test_an_order_and_its_charge_are_there_together_or_not_at_all(
    shop: Any, empty_database: str
) -> None:
    async with started(shop.api) as client:
        for _ in range(2):
            assert (await client.post("/orders/book")).status_code == 202
        assert look(empty_database) == (2, 0, 2)
        refused = await client.post("/orders/book")
        assert (refused.status_code, refused.json()) == (409, {"detail": "sold out"})
        assert look(empty_database) == (2, 0, 2)
        waiting = await client.get("/orders/1/charge")
        assert waiting.json() == {"state": "queued", "receipt": None}
        assert (await client.get("/orders/99/charge")).status_code == 404
        assert (await client.get("/health/ready")).status_code == 200


async def test_the_charge_is_made_once_and_has_its_receipt(shop: Any, empty_database: str) -> None:
    """Shows R20."""
    async with started(shop.api) as client, shop.tasks.run():
        order_id = (await client.post("/orders/book")).json()["order_id"]
        with psycopg.connect(empty_database) as connection:
            found = connection.execute("SELECT job_id FROM orders").fetchone()
        assert found is not None
        await shop.charge.handle(found[0]).wait_async(60)
        charged = await client.get(f"/orders/{order_id}/charge")
        receipt = {"order_id": order_id, "cents": 1200}
        assert charged.json() == {"state": "completed", "receipt": receipt}
    assert look(empty_database) == (1, 1, 1)


def test_the_shop_serves_and_charges_in_processes_of_their_own(
    empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two uvicorn processes and a worker, as in earnest."""
    stock(empty_database)
    monkeypatch.setenv("DATABASE_URL", empty_database)
    monkeypatch.setenv("PYTHONPATH", str(SHOP))
    with (
        Worker("main:tasks", empty_database, tmp_path) as worker,
        Uvicorn("main:api", empty_database, tmp_path, "--workers=2") as server,
        server.client() as client,
    ):

        def ready() -> bool:
            try:
                return client.get("/health/ready").status_code == 200
            except httpx.TransportError:
                return False

        soon(ready, 60, f"the shop was not ready: {server.log()}")
        codes = [client.post("/orders/book").status_code for _ in range(3)]
        assert codes == [202, 202, 409]
        soon(lambda: look(empty_database) == (2, 2, 2), 60, f"not all is paid: {worker.log()}")
        for order_id in (1, 2):
            receipt = {"order_id": order_id, "cents": 1200}
            document = client.get(f"/orders/{order_id}/charge").json()
            assert document == {"state": "completed", "receipt": receipt}
        server.process.terminate()
        assert wait_for(lambda: server.process.poll() is not None, 60)
        assert "Traceback" not in server.log()


def test_the_shop_does_not_start_before_its_database_is_migrated(
    empty_database: str, tmp_path: Path
) -> None:
    with Uvicorn("main:api", empty_database, tmp_path) as server:
        assert wait_for(lambda: server.process.poll() is not None, 60)
        assert server.process.returncode != 0
        last = server.log().strip().splitlines()[-3:]
    assert any("run: tenure db migrate" in line for line in last), server.log()
