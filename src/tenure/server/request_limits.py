"""What is read of a request before anybody looks into it: bounded headers, a bounded body, in
bounded time, of bounded depth. What is past these limits is refused here, and memory stays flat."""

import asyncio
import re
from typing import TYPE_CHECKING

from tenure.server.problems import ProblemError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_HEADERS = 100
MAX_HEADERS_SIZE = 16 * 1024
BODY_WITHIN = 10.0
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_ROUND = bytes.maketrans(b"[{]}", b"(())")
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))


class Limits:
    """ASGI middleware that reads the whole body first, and passes it on as one message."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or answer with the problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_WITHIN):
                body = await _body(scope, receive)
        except TimeoutError:
            slow = f"it must have arrived within {BODY_WITHIN:g} s"
            await ProblemError("too-slow-a-body", slow).answer(scope, receive, send)
            return
        except ProblemError as problem:
            await problem.answer(scope, receive, send)
            return
        if body is None:
            return
        await self._app(scope, _replay(body, receive), send)


async def _body(scope: "Scope", receive: "Receive") -> bytes | None:
    """The whole body; None if the client has gone."""
    headers = scope["headers"]
    size = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > MAX_HEADERS or size > MAX_HEADERS_SIZE:
        raise ProblemError(
            "too-many-headers",
            f"at most {MAX_HEADERS} headers of {MAX_HEADERS_SIZE:,} bytes in all are read",
        )
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > MAX_BODY:
            raise _too_large()
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > MAX_BODY:
            raise _too_large()
        if not message.get("more_body", False):
            break
    body = b"".join(chunks)
    if depth(body) > MAX_DEPTH:
        raise ProblemError("invalid", f"the body is nested more than {MAX_DEPTH} deep; flatten it")
    return body


def _too_large() -> ProblemError:
    return ProblemError(
        "too-large", f"the body has more than {MAX_BODY:,} bytes; send less at once"
    )


def depth(body: bytes) -> int:
    """How deep the brackets outside of strings are nested, whether or not it is JSON; past the
    limit, at least that deep. A level at a time, not a byte: who sends it need not be let in."""
    if sum(body.count(opening) for opening in (b"[", b"{")) <= MAX_DEPTH:
        return 0
    brackets = _STRING.sub(b"", body).translate(_ROUND, delete=_OTHERS)
    levels = 0
    while levels <= MAX_DEPTH and (inner := brackets.replace(b"()", b"")) != brackets:
        brackets = inner
        levels += 1
    return levels + brackets.count(b"(")


def _replay(body: bytes, receive: "Receive") -> "Receive":
    read = False

    async def once() -> "Message":
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once
