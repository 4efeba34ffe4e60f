"""The proxy of the how-to in front of a real server."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from support.binaries import ROOT
from support.processes import wait_for
from tests.server.conftest import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.server.conftest import Service

_PAGE = ROOT / "docs/how-to/server.md"


@pytest.fixture
def proxy(service: Service, tmp_path: Path) -> Iterator[int]:
    """HAProxy with the configuration of the page; only addresses and waits are others."""
    haproxy = shutil.which("haproxy")
    if haproxy is None:
        pytest.skip("haproxy is not installed")
    port, file = free_port(), tmp_path / "haproxy.cfg"
    [text] = re.findall(r"```cfg\n# haproxy\.cfg\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    for shown, here in (
        (":443 ssl crt /etc/haproxy/tenure.pem", f"127.0.0.1:{port}"),
        ("127.0.0.1:8400", urlsplit(service.url).netloc),
        ("timeout http-request 10s", "timeout http-request 1s"),
        ("conn_cur gt 100", "conn_cur gt 10"),
    ):
        assert shown in text
        text = text.replace(shown, here)
    file.write_text(text)
    subprocess.run([haproxy, "-c", "-f", file], check=True, capture_output=True)
    with subprocess.Popen([haproxy, "-f", file], stderr=subprocess.DEVNULL) as process:
        try:
            assert wait_for(lambda: is_up(port), 20)
            yield port
        finally:
            process.terminate()


def is_up(port: int) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/live", timeout=2).is_success
    return False


def test_slow_clients_end_at_the_proxy_and_others_pass(service: Service, proxy: int) -> None:
    url = f"http://127.0.0.1:{proxy}"
    with ExitStack() as opened:
        slow = [
            opened.enter_context(socket.create_connection(("127.0.0.1", proxy), timeout=20))
            for _ in range(5)
        ]
        for one in slow:
            one.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        with service.caller() as caller:
            answer = httpx.post(
                f"{url}/v1/jobs", headers=caller.headers, json={"task": "t", "queue": "proxied"}
            )
            assert answer.status_code == 201, answer.text
            queues, worker = ["proxied"], {"name": "behind a proxy"}
            acquired = httpx.post(
                f"{url}/v1/leases:acquire",
                headers=caller.headers,
                json={"queues": queues, "worker": worker, "wait": 10},
                timeout=30,
            )
            assert len(acquired.json()["jobs"]) == 1
        assert all(one.recv(100).startswith(b"HTTP/1.1 408") for one in slow)


def test_a_client_has_its_share_of_connections(proxy: int) -> None:
    with ExitStack() as opened:
        for _ in range(15):
            with suppress(OSError):
                opened.enter_context(socket.create_connection(("127.0.0.1", proxy), timeout=5))
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{proxy}/live", timeout=5)
    assert wait_for(lambda: is_up(proxy), 10)
