"""The units and the proxy of the hardening guide are accepted by the programs they are for."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = {"server.md": "tenure-server.service", "production.md": "shop-worker.service"}
CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")


def unit(page: str) -> str:
    text = (ROOT / "docs/how-to" / page).read_text()
    [found] = re.findall(r"```ini\n# \S+\.service\n(.*?)```", text, re.DOTALL)
    return str(found)


@pytest.mark.parametrize("page", PAGES)
def test_unit_has_the_options_that_the_guide_explains(page: str) -> None:
    guide = (ROOT / "docs/how-to/harden.md").read_text()
    options = set(re.findall(r"^(\w+)=", unit(page).split("# Hardening")[1], re.MULTILINE))
    options -= {"WantedBy"}
    assert {"NoNewPrivileges", "ProtectSystem", "PrivateTmp", "LimitNOFILE"} <= options
    explained = {name for name in options if name.startswith("ProtectKernel") or name in guide}
    assert explained == options


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_systemd_accepts_the_unit_and_finds_little_exposed(page: str, tmp_path: Path) -> None:
    file = tmp_path / PAGES[page]
    # The program and its user are not on this machine.
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit(page), flags=re.MULTILINE)
    file.write_text(re.sub(r"^User=\w+", "User=daemon", text, flags=re.MULTILINE))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],  # noqa: S607 - found above
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert file.name not in checked.stderr, checked.stderr
    exposed = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=40", str(file)],  # noqa: S607 - found above
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert exposed.returncode == 0, exposed.stdout[-300:]


class Echo(BaseHTTPRequestHandler):
    """Answers with the headers that it got."""

    def do_GET(self) -> None:
        body = "\n".join(f"{name.lower()}: {value}" for name, value in self.headers.items())
        # A health check does not wait for the body.
        with suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """HAProxy with the file as it is, in front of a server that shows what reaches it."""
    directory = tmp_path_factory.mktemp("haproxy")
    key, certificate, both = (directory / name for name in ("key", "certificate", "both.pem"))
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    both.write_text(certificate.read_text() + key.read_text())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    environment = {
        "TENURE_PROXY_BIND": f"127.0.0.1:{port}",
        "TENURE_PROXY_CERT": str(both),
        "TENURE_PROXY_TO": str(server.server_port),
    }
    assert HAPROXY
    running = subprocess.Popen(
        [HAPROXY, "-db", "-q", "-f", str(CONFIGURATION)], env=os.environ | environment
    )
    try:
        trust = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trust) as client:
            assert wait_for(lambda: _answers(client), 20)
            yield client
    finally:
        running.terminate()
        running.wait(20)
        server.shutdown()
        server.server_close()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/live").status_code == 200
    except httpx.TransportError:
        return False


def any_certificate() -> ssl.SSLContext:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return trust


@needs_haproxy
def test_proxy_sets_what_a_client_may_not_choose(proxy: httpx.Client) -> None:
    forged = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1", "X-Forwarded-Host": "e"}
    answer = proxy.get("/v1/queues", headers=forged | {"X-Forwarded-Proto": "http"})
    seen = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert seen["x-forwarded-proto"] == "https"
    assert not {"forwarded", "x-forwarded-host"} & seen.keys()
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


@needs_haproxy
def test_proxy_refuses_metrics_and_large_bodies(proxy: httpx.Client) -> None:
    assert proxy.get("/metrics").status_code == 404
    # The answer comes before the body: only the head is sent.
    place = (proxy.base_url.host, proxy.base_url.port or 443)
    with (
        socket.create_connection(place, 20) as plain,
        any_certificate().wrap_socket(plain) as connection,
    ):
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: e\r\nContent-Length: 5242880\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@needs_haproxy
def test_proxy_slows_an_address_that_sends_too_much(proxy: httpx.Client) -> None:
    # From an address of its own: the other tests keep theirs.
    way = httpx.HTTPTransport(local_address="127.0.0.2", verify=any_certificate())
    with httpx.Client(base_url=proxy.base_url, transport=way) as flood:
        codes = [flood.get("/live").status_code for _ in range(320)]
    assert codes[0] == 200
    assert codes[-1] == 429
