"""The dashboard over https: a real browser, a real proxy, a certificate of our own authority."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsing import WITHIN
from support.processes import wait_for
from support.serving import OPS, free_port, serving
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from support.databases import Databases
    from support.serving import Service

PROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 70s
    timeout server 70s
frontend https
    bind 127.0.0.1:{public} ssl crt {directory}/both.pem
    http-request set-header X-Forwarded-Proto https
    http-request set-header X-Forwarded-For 198.51.100.7
    http-request del-header X-Forwarded-User
    default_backend tenure
backend tenure
    server tenure 127.0.0.1:{port}
"""
SIGN = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem \
    -subj /CN=Test -days 2 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.csr \
    -subj /CN=localhost 2>/dev/null
printf 'subjectAltName=DNS:localhost' > names
openssl x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names \
    -out own.pem 2>/dev/null
cat own.pem own.key > both.pem
"""


@contextmanager
def proxy(directory: Path, public: int, port: int) -> Iterator[None]:
    subprocess.run(["/bin/sh", "-ec", SIGN], cwd=directory, check=True)
    config = directory / "haproxy.cfg"
    config.write_text(PROXY.format(public=public, port=port, directory=directory))
    with subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(config)]) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def behind(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Service]]:
    """Where browsers find the server, and the server."""
    directory, public = tmp_path_factory.mktemp("proxy"), free_port()
    url = f"https://localhost:{public}"
    database = databases.create(databases.template("tenure", install))
    options = ("--public-url", url, "--trusted-proxies", "127.0.0.1")
    with (
        serving(database, directory, *options) as service,
        proxy(directory, public, int(service.url.rpartition(":")[2])),
    ):
        assert wait_for(lambda: _listens(public), 20)
        yield url, service
    databases.drop(database)


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def test_sign_in_and_out_over_https(browser: Browser, behind: tuple[str, Service]) -> None:
    url, service = behind
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(WITHIN)
    page = context.new_page()
    page.goto(f"{url}/queues")
    page.get_by_label("Access token").fill(service.secret)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{url}/queues")
    [cookie] = context.cookies()
    assert cookie["name"] == f"__Host-tenure_{url.rpartition(':')[2]}"
    assert (cookie["secure"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    [row, *_] = service.admin.sessions.list()
    assert row.address == "198.51.100.7"
    page.locator("details.who summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access token")).to_be_visible()
    assert context.cookies() == []
    code = service.admin.sessions.create_code(row.token_id or 0, OPS).secret
    page.goto(f"{url}/sign-in#{code}")
    expect(page.locator("header nav")).to_be_visible()
    context.close()
