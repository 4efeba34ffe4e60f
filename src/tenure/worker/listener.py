"""The small HTTP listener of a worker or a scheduler: `/healthz` and `/metrics`, nothing else.

It answers from memory, on the loop of a process that runs no handlers. Each connection is answered
once and closed; one that says too much, or takes too long to say it, is closed without an answer.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from tenure._services.base import log
from tenure.errors import ConfigError
from tenure.metrics import CONTENT_TYPE

_WITHIN = 5.0
_LONGEST = 8192
_AT_ONCE = 32
_BACKLOG = 2048
_WORDS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class Answer(NamedTuple):
    """What is answered."""

    status: int
    kind: str
    text: str


def listening(
    host: str, port: int, *, said_by: str = "--metrics-host or --metrics-port"
) -> socket.socket:
    """A socket that listens there; ConfigError if that cannot be, with the options by which the
    place is said."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        on = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"nothing can listen on {host} port {port}: {error.strerror}; choose another with "
            f"{said_by}, or end what listens there"
        ) from error
    # An answer is written in two parts, and the second would wait 40 ms for an ACK of the first.
    # asyncio sets this only where the socket names its protocol, which this one does not.
    on.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return on


@asynccontextmanager
async def answering(
    on: socket.socket | None, *, metrics: Callable[[], str], health: Callable[[], Answer]
) -> AsyncIterator[None]:
    """Answer as long as the block lasts; without a socket, nobody."""
    if on is None:
        yield
        return
    listener = _Listener(
        {"/metrics": lambda: Answer(200, CONTENT_TYPE, metrics())} | {"/healthz": health}
    )
    server = await asyncio.start_server(listener.serve, sock=on, limit=_LONGEST)
    host, port = on.getsockname()[:2]
    log.info("metrics are at http://%s:%d/metrics", f"[{host}]" if ":" in host else host, port)
    try:
        yield
    finally:
        server.close()


class _Listener:
    def __init__(self, paths: dict[str, Callable[[], Answer]]) -> None:
        self._paths = paths
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _AT_ONCE:
                async with asyncio.timeout(_WITHIN):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", errors="replace")
        if path not in self._paths:
            answer = Answer(404, "text/plain", "there are /metrics and /healthz\n")
        elif method not in (b"GET", b"HEAD"):
            answer = Answer(405, "text/plain", "it can only be read\n")
        else:
            answer = self._paths[path]()
        body = answer.text.encode(errors="replace")
        lines = [
            f"HTTP/1.1 {answer.status} {_WORDS[answer.status]}",
            f"Content-Type: {answer.kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if method == b"HEAD" else body)
