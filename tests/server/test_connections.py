"""Clients that connect and send nothing: they are cut off, and others are served meanwhile."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from support.processes import wait_for
from support.store import install
from tenure.server import connections
from tenure.server.connections import AcceptErrors, ConnectionTable, fit
from tests.server.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from support.databases import Databases
    from tests.server.conftest import Service

LARGE = b"x" * 32 * 1024 * 1024
HALF = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def connect(service: Service) -> socket.socket:
    place = urlsplit(service.url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=30)


@contextmanager
def files(most: int) -> Iterator[None]:
    """Limit the open files of this process's children, as systemd does."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_closed(waiting: socket.socket) -> bool:
    """Wait for the end of a connection, past what is left of an answer."""
    with suppress(ConnectionError):
        while waiting.recv(4096):
            pass
    return True


async def refusing(scope: Scope, _receive: Receive, send: Send) -> None:
    """An app that answers without reading a body; on /large, with more than buffers hold."""
    body = LARGE if scope["path"] == "/large" else b"no"
    await send({"type": "http.response.start", "status": 401, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def table() -> ConnectionTable:
    return ConnectionTable(most=9, most_per_address=9)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, table: ConnectionTable) -> Iterator[int]:
    """A server in this process, whose clients have a second for their headers and to read."""
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 1.0)
    monkeypatch.setattr(connections, "READ_WITHIN", 1.0, raising=False)
    config = uvicorn.Config(refusing, log_config=None, lifespan="off", timeout_keep_alive=60)
    config.http = connections.protocol(table)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as on:
        serving = threading.Thread(target=server.run, kwargs={"sockets": [on]})
        serving.start()
        yield on.getsockname()[1]
        server.should_exit = True
        serving.join(20)


def test_a_client_has_a_time_for_its_headers_and_for_a_body_that_is_not_needed(port: int) -> None:
    """A further line now and then does not extend it, nor does a first request that was complete.
    A client that was answered before it sent its body does not keep the connection either."""
    names = ("silent", "dripping", "second", "refused")
    with ExitStack() as opened:
        waiting = {
            name: opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            for name in names
        }
        waiting["second"].sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        waiting["refused"].sendall(
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
        )
        for name in ("second", "refused"):
            assert waiting[name].recv(4096).startswith(b"HTTP/1.1 401")
        for name in ("dripping", "second"):
            waiting[name].sendall(HALF)
        until = time.monotonic() + 5
        while waiting and time.monotonic() < until:
            # One sign at a time: headers of more than 64 KiB would end the connection, too.
            for name, client in [*waiting.items()]:
                if _is_over(client, b"" if name == "silent" else b"x"):
                    del waiting[name]
            time.sleep(0.1)
        assert not waiting, f"still open: {[*waiting]}"


def _is_over(client: socket.socket, sign: bytes) -> bool:
    """Send a sign, and return whether the server has closed the connection."""
    try:
        client.sendall(sign)
        client.settimeout(0.01)
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("header", ["", "Connection: close\r\n"])
def test_a_client_that_does_not_read_is_not_waited_for(
    port: int, table: ConnectionTable, header: str
) -> None:
    """Its request would be in progress forever, so its connection would not make room."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as unread:
        request = f"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n"
        unread.sendall(request.encode() * 3)
        assert wait_for(lambda: len(table) == 1, 10)
        assert wait_for(lambda: len(table) == 0, 10)


@pytest.fixture(scope="module")
def small(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with eight connections."""
    database = databases.create(databases.template("tenure", install))
    with (
        files(512),
        serving(database, tmp_path_factory.mktemp("small"), "--max-connections", "8") as service,
    ):
        yield service
    databases.drop(database)


def test_connections_without_a_request_make_room_for_others(small: Service) -> None:
    with ExitStack() as opened, httpx.Client(base_url=small.url) as regular:
        assert regular.get("/live").is_success
        silent = [opened.enter_context(connect(small)) for _ in range(40)]
        for waiting in silent:
            waiting.sendall(HALF)
        for _ in range(5):
            assert httpx.get(f"{small.url}/live", timeout=5).is_success
        assert regular.get("/live").is_success
        assert all(is_closed(waiting) for waiting in silent[:30])


def test_connections_in_use_stay_and_a_further_client_is_refused(small: Service) -> None:
    wait = (
        "POST /v1/leases:acquire HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {small.secret}\r\n"
        "Content-Type: application/json\r\n"
    )
    body = '{"queues": ["q"], "worker": {"name": "w"}, "wait": 30}'
    with ExitStack() as opened:
        for _ in range(8):
            opened.enter_context(connect(small)).sendall(
                f"{wait}Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
        answers: list[httpx.Response] = []
        assert wait_for(lambda: refused(small, answers), 20)
    [*_, answer] = answers
    assert (answer.status_code, answer.json()["code"]) == (503, "too-many-connections")
    assert answer.headers["retry-after"] == "1"


def refused(service: Service, answers: list[httpx.Response]) -> bool:
    answers.append(httpx.get(f"{service.url}/live", timeout=5))
    return not answers[-1].is_success


def test_the_limit_of_open_files_is_raised(small: Service) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert resource.prlimit(small.process.pid, resource.RLIMIT_NOFILE) == (hard, hard)


class FakeTransport:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


class Peer:
    """As much of a connection as the table looks at."""

    def __init__(self, address: str | None) -> None:
        self.limited_address = address
        self.transport = FakeTransport()


def test_an_address_at_its_limit_displaces_its_own_connections_alone() -> None:
    table = ConnectionTable(most=10, most_per_address=2)
    other, *own = peers = [Peer("10.0.0.1"), *(Peer("10.0.0.2") for _ in range(4))]

    assert all(table.admit(peer) for peer in peers)  # type: ignore[arg-type] # as much as is needed

    assert [peer.transport.aborted for peer in own] == [True, True, False, False]
    assert not other.transport.aborted
    for peer in own[2:]:
        table.work(peer)  # type: ignore[arg-type] # as above
    assert not table.admit(Peer("10.0.0.2"))  # type: ignore[arg-type] # as above
    assert table.admit(Peer("10.0.0.3"))  # type: ignore[arg-type] # as above


def test_loopback_and_proxies_have_no_limit_per_address() -> None:
    table = ConnectionTable(most=9, most_per_address=1, proxies=["10.1.0.0/16", "fd00::1", "name"])

    assert all(map(table.is_proxy, ("127.0.0.1", "::1", "10.1.2.3", "fd00::1")))
    assert not any(map(table.is_proxy, ("10.2.0.1", "fd00::2", "not an address")))
    assert ConnectionTable(most=9, most_per_address=1, proxies=["*"]).is_proxy("10.2.0.1")


def test_connections_leave_files_for_the_database(caplog: pytest.LogCaptureFixture) -> None:
    assert fit(4096, 65_536) == 4096
    assert not caplog.records
    assert fit(4096, 1024) == 768
    assert "LimitNOFILE" in caplog.text


def test_errors_of_accepting_are_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(connections, "monotonic", lambda: now)
    handler = AcceptErrors()
    error = {
        "message": "socket.accept() out of system resource",
        "exception": OSError(24, os.strerror(24)),
    }
    for _ in range(1000):
        handler(None, error)  # type: ignore[arg-type] # it needs no loop for this
    now += 61
    handler(None, error)  # type: ignore[arg-type] # as above
    assert len(caplog.records) == 2
    assert "open files" in caplog.text
