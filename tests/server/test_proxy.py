"""The proxy of the hardening guide: HAProxy with the file that Tenure ships."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from support.haproxy import HAPROXY, proxied
from support.processes import wait_for

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from support.haproxy import Proxy
    from tests.server.conftest import Service

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")
# Without these, a test of slow clients takes 10 s.
SHORTER = {
    "timeout http-request 10s": "timeout http-request 1s",
    "wait-for-body time 10s": "wait-for-body time 1s",
}
MOST_CONNECTIONS = 50


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


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The file as it is, in front of a server that shows what reaches it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with proxied(server.server_port, tmp_path_factory.mktemp("haproxy")) as proxy:
            yield proxy
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def impatient(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The file with shorter waits, in front of Tenure's server."""
    to = urlsplit(service.url).port or 0
    with proxied(to, tmp_path_factory.mktemp("impatient"), SHORTER) as proxy:
        yield proxy


def connect(proxy: Proxy, address: str) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", proxy.port), 20, (address, 0))
    return proxy.trust.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_client_cannot_choose_what_the_proxy_sets(proxy: Proxy) -> None:
    forged = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1", "X-Forwarded-Host": "e"}
    forged |= {"X-Forwarded-Proto": "http", "X-Forwarded-User": "ana"}
    with proxy.client() as client:
        answer = client.get("/v1/queues", headers=forged)
    seen = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert seen["x-forwarded-proto"] == "https"
    assert not {"forwarded", "x-forwarded-host", "x-forwarded-user"} & seen.keys()
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_metrics_and_large_bodies_are_refused(proxy: Proxy) -> None:
    with proxy.client() as client:
        assert client.get("/metrics").status_code == 404
    # The answer comes before the body: only the head is sent.
    with connect(proxy, "127.0.0.1") as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: e\r\nContent-Length: 5242880\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_an_address_that_sends_too_much_is_refused(proxy: Proxy) -> None:
    # From an address of its own: the other tests keep theirs.
    with proxy.client(address="127.0.0.2") as flood:
        codes = [flood.get("/live").status_code for _ in range(320)]
    assert codes[0] == 200
    assert codes[-1] == 429


def test_an_address_that_is_refused_too_often_is_refused_at_once(impatient: Proxy) -> None:
    with impatient.client(address="127.0.0.3") as guesser:
        codes = [guesser.get("/v1/queues").status_code for _ in range(210)]
        assert guesser.get("/live").status_code == 429
    assert codes[0] == 401
    assert codes[-1] == 429


def test_a_client_has_its_share_of_connections(proxy: Proxy) -> None:
    """Also with connections that send nothing, not even TLS."""
    address = "127.0.0.4"
    with ExitStack() as opened, proxy.client(address=address) as client:
        for _ in range(MOST_CONNECTIONS + 5):
            with suppress(OSError):
                opened.enter_context(
                    socket.create_connection(("127.0.0.1", proxy.port), 5, (address, 0))
                )
        with pytest.raises(httpx.TransportError):
            client.get("/live")
        assert proxy.is_up()
        opened.close()
        assert wait_for(lambda: _answers(client), 10)


def _answers(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/live").is_success
    return False


def test_slow_clients_end_at_the_proxy_and_others_pass(service: Service, impatient: Proxy) -> None:
    """Slow with the head of a request, and slow with its body."""
    head = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
    body = b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    with ExitStack() as opened:
        slow = [opened.enter_context(connect(impatient, "127.0.0.5")) for _ in range(6)]
        for nth, one in enumerate(slow):
            one.sendall(head if nth % 2 else body)
        with service.caller() as caller, impatient.client() as client:
            client.headers.update(caller.headers)
            answer = client.post("/v1/jobs", json={"task": "t", "queue": "proxied"})
            assert answer.status_code == 201, answer.text
            wanted = {"queues": ["proxied"], "worker": {"name": "behind a proxy"}, "wait": 10}
            acquired = client.post("/v1/leases:acquire", json=wanted)
            assert len(acquired.json()["jobs"]) == 1
        assert all(one.recv(100).startswith(b"HTTP/1.1 408") for one in slow)
