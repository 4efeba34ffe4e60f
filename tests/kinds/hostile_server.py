"""A server that misbehaves in as many ways as its paths have names. A process of its own.

    python -m tests.kinds.hostile_server DIRECTORY

It writes its ports to stdout as one line of JSON, and each request that it reads to
DIRECTORY/requests, one JSON object a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import struct
import sys
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ZEROS = bytes(1024 * 1024)


class Call(NamedTuple):
    """One request, and where to answer it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: dict[str, str]

    async def write(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            # `drain` doesn't let others run while the buffer has room.
            await asyncio.sleep(0)

    async def answer(self, *headers: str, body: bytes = b"", status: str = "200 OK") -> None:
        lines = [f"HTTP/1.1 {status}", *headers]
        if not any(line.lower().startswith(("content-length", "transfer-")) for line in headers):
            lines.append(f"Content-Length: {len(body)}")
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def reset(self) -> None:
        """Close with a reset instead of an end."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def endless(call: Call, *headers: str, chunked: bool = False) -> None:
    await call.write("\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode())
    for _ in range(10_000):
        await call.write(b"100000\r\n" + ZEROS + b"\r\n" if chunked else ZEROS)


async def drip(call: Call, text: bytes, pause: float = 0.05) -> None:
    for at in range(len(text)):
        await call.write(text[at : at + 1])
        await asyncio.sleep(pause)


async def forever() -> None:
    await asyncio.sleep(600)


def _text(body: bytes, *headers: str) -> Callable[[Call], Awaitable[None]]:
    return lambda call: call.answer(*headers, body=body)


def _raw(text: bytes) -> Callable[[Call], Awaitable[None]]:
    return lambda call: call.write(text)


def _retry_after(status: str, value: Callable[[], str]) -> Callable[[Call], Awaitable[None]]:
    return lambda call: call.answer(f"Retry-After: {value()}", status=status)


def _date(delta: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=delta), usegmt=True)


async def redirect_loop(call: Call) -> None:
    await call.answer("Location: /redirect-loop", status="302 Found")


async def gzip_bomb(call: Call) -> None:
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(1024):
        await call.write(packer.compress(ZEROS) + packer.flush(zlib.Z_SYNC_FLUSH))


async def empty_gzip_blocks(call: Call) -> None:
    """Data that becomes nothing, without an end."""
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    await call.write(packer.compress(b"x") + packer.flush(zlib.Z_SYNC_FLUSH))
    for _ in range(10_000):
        await call.write(b"\x00\x00\x00\xff\xff" * 10_000)


async def silent(_: Call) -> None:
    await forever()


async def silent_body(call: Call) -> None:
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    await forever()


async def reset_now(call: Call) -> None:
    call.reset()


async def reset_in_headers(call: Call) -> None:
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await asyncio.sleep(0.05)
    call.reset()


async def reset_in_body(call: Call) -> None:
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    await asyncio.sleep(0.05)
    call.reset()


async def half_close(call: Call) -> None:
    call.writer.write_eof()
    await forever()


async def slow_headers(call: Call) -> None:
    await drip(call, b"HTTP/1.1 200 OK\r\n" + b"X-Slow: yes\r\n" * 100)


async def slow_body(call: Call) -> None:
    await call.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    await drip(call, b"x" * 1000)


async def endless_continue(call: Call) -> None:
    for _ in range(600):
        await call.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.01)


async def echo(call: Call) -> None:
    await call.answer(
        "Content-Type: application/json",
        f"X-Request-Id: {call.headers.get('authorization', '-')}",
        body=json.dumps(call.headers).encode(),
    )


async def flaky(call: Call) -> None:
    """Succeeds at the third attempt."""
    if int(call.headers["tenure-attempt"]) < 3:
        await call.answer("Retry-After: 1", status="503 Busy")
    else:
        await call.answer("Content-Type: application/json", body=b'{"accepted": true}')


async def many_headers(call: Call) -> None:
    await call.answer(*(f"X-{number}: {'y' * 20}" for number in range(10_000)))


async def keep_then_close(call: Call) -> None:
    await call.answer("Connection: close", body=b"bye")
    call.writer.close()


BEHAVIORS: dict[str, Callable[[Call], Awaitable[None]]] = {
    # Redirects.
    "redirect-loop": redirect_loop,
    "redirect-metadata": lambda call: call.answer(
        "Location: http://169.254.169.254/latest/", status="307 Temporary Redirect"
    ),
    # Time.
    "silent": silent,
    "silent-body": silent_body,
    "slow-headers": slow_headers,
    "slow-body": slow_body,
    "endless-continue": endless_continue,
    "half-close": half_close,
    # The connection.
    "reset": reset_now,
    "reset-in-headers": reset_in_headers,
    "reset-in-body": reset_in_body,
    "close": _raw(b""),
    "close-kept": keep_then_close,
    # The size.
    "endless": endless,
    "endless-chunked": lambda call: endless(call, "Transfer-Encoding: chunked", chunked=True),
    "ten-gigabytes": lambda call: endless(call, "Content-Length: 10485760000"),
    "gzip-bomb": gzip_bomb,
    "gzip-nothing": empty_gzip_blocks,
    "gzip-twice": _text(gzip.compress(gzip.compress(ZEROS)), "Content-Encoding: gzip, gzip"),
    "huge-header": lambda call: call.answer(f"X-Huge: {'y' * 300_000}"),
    "many-headers": many_headers,
    # Encodings.
    "gzip": _text(gzip.compress(b"hello"), "Content-Encoding: gzip"),
    "deflate": _text(zlib.compress(b"hello"), "Content-Encoding: deflate"),
    "brotli": _text(b"\x0b\x02\x80hello\x03", "Content-Encoding: br"),
    "gzip-broken": _text(b"\x1f\x8b\x08\x00garbage garbage", "Content-Encoding: gzip"),
    "gzip-cut": _text(gzip.compress(b"hello" * 100)[:-12], "Content-Encoding: gzip"),
    "binary": _text(bytes(range(256)), "Content-Type: application/octet-stream"),
    "nul": _text(b"a\x00b", "Content-Type: text/plain"),
    "controls": _text(b"\x01" * 60_000, "Content-Type: text/plain"),
    "latin-1": _text(b"caf\xe9", "Content-Type: text/plain; charset=ISO-8859-1"),
    "utf-16": _text("hi".encode("utf-16"), "Content-Type: text/plain; charset=utf-16"),
    "cut-character": _text("é".encode() * 40_000),
    "quotes": _text(b'"' * 60_000),
    # The protocol.
    "http-0.9": _raw(b"<html>hello</html>"),
    "http-1.0": _raw(b"HTTP/1.0 200 OK\r\n\r\nold"),
    "http-2": _raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
    "http-7": _raw(b"HTTP/7.7 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "garbage": _raw(b"\xff\xfe\xfd" * 100),
    "no-reason": _raw(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"),
    "status-99": _raw(b"HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n"),
    "status-word": _raw(b"HTTP/1.1 two-hundred OK\r\nContent-Length: 0\r\n\r\n"),
    "upgrade": _raw(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi"
    ),
    "early-hints": _raw(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    ),
    "short-body": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
    "two-lengths": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
    "negative-length": _raw(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nabc"),
    "length-and-chunked": _raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\n"
    ),
    "bad-chunk": _raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nok\r\n"),
    "huge-chunk-size": _raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\nok"
    ),
    "chunked-cut": _raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
    "nul-header": _raw(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n"),
    "no-colon": _raw(b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n"),
    "folded-header": _raw(b"HTTP/1.1 200 OK\r\nEtag: a\r\n b\r\nContent-Length: 0\r\n\r\n"),
    "split": _raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    ),
    # What is kept, and what isn't.
    "cookie": _text(b"ok", "Set-Cookie: session=hush", "WWW-Authenticate: Basic", "ETag: seven"),
    "echo": echo,
    "flaky": flaky,
    # Retry-After.
    "wait-seconds": _retry_after("503 Busy", lambda: "120"),
    "wait-date": _retry_after("429 Slow", lambda: _date(300)),
    "wait-past": _retry_after("429 Slow", lambda: _date(-300)),
    "wait-long": _retry_after("503 Busy", lambda: "9" * 40),
    "wait-nonsense": _retry_after("503 Busy", lambda: "tomorrow, perhaps"),
    "wait-zero": _retry_after("503 Busy", lambda: "0"),
}


class Server:
    def __init__(self, directory: Path) -> None:
        self._log = (directory / "requests").open("a")
        self._directory = directory

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self._record(method=method, target=target, headers=headers, body=body.decode("latin-1"))
        name = target.strip("/").partition("?")[0]
        call = Call(reader, writer, headers)
        if name.startswith("status/"):
            status = name.removeprefix("status/")
            await call.answer(body=b"" if status in {"204", "304"} else b"seen", status=status)
        elif name in BEHAVIORS:
            await BEHAVIORS[name](call)
            # What was written without the rules of the protocol leaves nothing to continue with.
            return name in {"cookie", "echo", "gzip", "deflate"}
        else:
            await call.answer(body=b"ok")
        return True

    def _record(self, **request: Any) -> None:
        self._log.write(json.dumps(request) + "\n")
        self._log.flush()

    def tls(self, name: str, **options: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._directory / f"{name}.pem")
        if options.get("old"):
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        if options.get("client"):
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self._directory / "authority.pem")
        return context


async def main(directory: Path) -> None:
    server = Server(directory)
    ports: dict[str, int] = {}

    async def listen(name: str, context: ssl.SSLContext | None = None) -> None:
        opened = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
        ports[name] = opened.sockets[0].getsockname()[1]

    async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await forever()

    await listen("plain")
    for name in ("good", "expired", "other-name", "self-signed", "untrusted"):
        await listen(name, server.tls(name))
    await listen("client", server.tls("good", client=True))
    with contextlib.suppress(ValueError, ssl.SSLError):
        await listen("old", server.tls("good", old=True))
    opened = await asyncio.start_server(mute, "127.0.0.1", 0)
    ports["mute"] = opened.sockets[0].getsockname()[1]
    # A full queue of connections: the kernel answers no further SYN.
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    ports["full"] = full.getsockname()[1]
    crowd = [socket.socket() for _ in range(4)]
    for one in crowd:
        one.setblocking(False)
        one.connect_ex(full.getsockname())
    # A port that nothing listens on.
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    ports["closed"] = closed.getsockname()[1]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
