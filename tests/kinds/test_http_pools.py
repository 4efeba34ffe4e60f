"""Connections: one pool for each host, reused, bounded, and closed when nothing uses them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Snooze
from tenure.kinds.http import delivery
from tenure.kinds.http.addresses import AddressRefused
from tenure.kinds.http.configuration import parse_configuration
from tenure.kinds.http.delivery import HttpSender
from tenure.kinds.http.response import RequestFailed
from tenure.kinds.http.url import read_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tenure.kinds.http.addresses import Address


class Receiver:
    """A server that counts its connections, and answers /wait only when it is released."""

    def __init__(self) -> None:
        self.connections = 0
        self.released = asyncio.Event()
        self.crowded = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.connections > 1:
            self.crowded.set()
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"/wait" in head:
                    await self.released.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nEcho: hush\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def url(self, path: str = "") -> Any:
        return read_url(f"http://localhost:{self.port}/{path}")


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
        receiver.released.set()


async def _local(host: str, port: int) -> Sequence[Address]:
    return [ip_address("127.0.0.1")]


def _sender(receiver: Receiver, resolver: Any = _local, **table: Any) -> HttpSender:
    config = {"allow": [f"localhost:{receiver.port}"], "connect_timeout": 0.2, **table}
    return HttpSender(parse_configuration(config), resolver=resolver)


async def test_requests_to_one_host_share_a_connection() -> None:
    async with receiving() as receiver:
        sender = _sender(receiver)
        for _ in range(5):
            assert (await sender.send("GET", receiver.url(), [], b"")).body == b"ok"
        assert receiver.connections == 1
        await sender.aclose()


async def test_a_host_at_its_limit_delays_a_job_without_charging_it() -> None:
    async with receiving() as receiver:
        sender = _sender(receiver, connections_per_host=2)
        busy = [
            asyncio.create_task(sender.send("GET", receiver.url("wait"), [], b"")) for _ in range(2)
        ]
        async with asyncio.timeout(10):
            await receiver.crowded.wait()
        with pytest.raises(Snooze):
            await sender.send("GET", receiver.url(), [], b"")
        receiver.released.set()
        assert [(await one).status for one in busy] == [200, 200]
        assert receiver.connections == 2
        await sender.aclose()


async def test_unused_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver, receiving() as other:
        sender = _sender(receiver, allow=[f"localhost:{receiver.port}", f"localhost:{other.port}"])
        await sender.send("GET", receiver.url(), [], b"")
        monkeypatch.setattr(delivery, "_KEPT_OPEN", -1.0)
        await sender.send("GET", other.url(), [], b"")
        assert [key[2] for key in sender._pools] == [other.port]
        await sender.aclose()


async def test_each_new_connection_is_checked_again() -> None:
    """A name that was allowed once is looked up and checked for the next connection, too."""
    answers = iter(["127.0.0.1", "169.254.169.254", "127.0.0.1"])

    async def rebinding(host: str, port: int) -> Sequence[Address]:
        return [ip_address(next(answers))]

    async with receiving() as receiver:
        sender = _sender(receiver, rebinding)
        await sender.send("GET", receiver.url(), [], b"")
        # The open connection is still the one that was checked.
        await sender.send("GET", receiver.url(), [], b"")
        await sender.aclose()
        with pytest.raises(AddressRefused):
            await sender.send("GET", receiver.url(), [], b"")
        await sender.send("GET", receiver.url(), [], b"")
        assert receiver.connections == 2
        await sender.aclose()


async def test_a_resolver_that_does_not_respond_fails_the_attempt_in_time() -> None:
    async def silent(host: str, port: int) -> Sequence[Address]:
        await asyncio.sleep(600)
        return []

    async with receiving() as receiver:
        with pytest.raises(RequestFailed, match="was not looked up within"):
            await _sender(receiver, silent).send("GET", receiver.url(), [], b"")


async def test_the_next_address_is_tried_if_one_does_not_answer() -> None:
    async def both(host: str, port: int) -> Sequence[Address]:
        return [ip_address("127.0.0.2"), ip_address("127.0.0.1")]

    async with receiving() as receiver:
        sender = _sender(receiver, both)
        assert (await sender.send("GET", receiver.url(), [], b"")).status == 200
        await sender.aclose()


async def test_the_log_of_the_client_has_no_response(caplog: pytest.LogCaptureFixture) -> None:
    """At the level debug, httpcore logs what a server echoes."""
    caplog.set_level(logging.DEBUG)
    async with receiving() as receiver:
        sender = _sender(receiver)
        await sender.send("GET", receiver.url(), [], b"")
        await sender.aclose()
    assert "hush" not in caplog.text
