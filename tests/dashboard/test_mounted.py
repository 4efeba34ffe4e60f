"""The dashboard below a path of another program: every address leads back to it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.processes import wait_for
from support.serving import OPS, Service, free_port
from support.store import install
from tenure import Tenure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from support.databases import Databases

HOST = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
import uvicorn, sys
from tenure import Tenure
from tenure.server import create

queue = create(Tenure())

@asynccontextmanager
async def lifespan(app):
    async with queue.router.lifespan_context(queue):
        yield

async def home(request):
    return PlainTextResponse("the host's own page")

app = Starlette(routes=[Route("/", home), Mount("/admin/jobs", queue)], lifespan=lifespan)
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""


@pytest.fixture(scope="module")
def mounted(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: Path = tmp_path_factory.mktemp("host")
    (directory / "host.py").write_text(HOST)
    database = databases.create(databases.template("tenure", install))
    app = Tenure(database)
    made = app.admin.tokens.create("host", OPS, scopes=["admin"])
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "host.py", str(port)],
        cwd=directory,
        env=os.environ | {"TENURE_DATABASE_URL": database},
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            assert wait_for(lambda: _answers(url), 20)
            yield Service(f"{url}/admin/jobs", database, made.secret, directory, process, app.admin)
        finally:
            process.terminate()
            process.wait(20)
    app.close()
    databases.drop(database)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_every_place_of_the_bar_is_below_the_path(browser: Browser, mounted: Service) -> None:
    with seated(browser, mounted, signed_in=False) as seat:
        seat.sign_in()
        expect(seat.page).to_have_url(f"{mounted.url}/")
        links = seat.page.locator("header nav a").all()
        assert all((one.get_attribute("href") or "").startswith("/admin/jobs/") for one in links)
        for path in [one.get_attribute("href") or "" for one in links]:
            answer = seat.page.goto(mounted.url.removesuffix("/admin/jobs") + path)
            assert answer is not None
            assert answer.status == 200, path
            expect(seat.page.locator("header nav a[aria-current]")).to_have_count(1)


def test_it_is_live_there_and_signs_out_there(browser: Browser, mounted: Service) -> None:
    with seated(browser, mounted) as seat:
        seat.go("/queues")
        expect(seat.page.locator("#live-state")).to_have_attribute("data-state", "live")
        mounted.enqueue("below")
        expect(seat.page.locator("main")).to_contain_text("below")
        seat.page.locator("details.who summary").click()
        seat.page.get_by_role("button", name="Sign out").click()
        expect(seat.page).to_have_url(f"{mounted.url}/sign-in")


def test_who_is_not_signed_in_comes_to_where_they_wanted(
    browser: Browser, mounted: Service
) -> None:
    with seated(browser, mounted, signed_in=False) as seat:
        seat.go("/queues")
        seat.page.get_by_label("Access token").fill(mounted.secret)
        seat.page.keyboard.press("Enter")
        expect(seat.page).to_have_url(f"{mounted.url}/queues")
