"""Check requests before they are parsed: first the access token, then the body's size, encoding,
nesting and arrival time.
"""

import asyncio
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from tenure.errors import TenureError
from tenure.server import problems
from tenure.server.front import address_of
from tenure.server.problems import ProblemError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tenure.server.auth import TokenCache

MAX_BODY = 4 * 1024 * 1024
# One job can have 256 KiB of arguments. Text written as \uXXXX takes up to three times the space.
MAX_JOB_BODY = 1024 * 1024
MAX_FORM = 320 * 1024
# Without an access token, a client can only submit the sign-in form.
MAX_OPEN_BODY = 8 * 1024
MAX_DEPTH = 64
MAX_HEADERS = 100
MAX_HEADERS_SIZE = 16 * 1024
BODY_WITHIN = 10.0
_BATCHES = ("/v1/jobs:batch", "/v1/leases:")
_FOR_PROGRAMS = ("/v1", "/ready", "/metrics", "/openapi.json")
# Scrapers are let in while the database is down.
_SCRAPED = "/metrics"
# How much of a body is checked before other threads get a turn. This takes about 3 ms.
_PIECE = 64 * 1024
_LEVELS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))
_HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


class Limits:
    """ASGI middleware that authenticates programs, then reads the whole body and passes it on as
    one message.

    Errors that nothing else handles are caught here, so they are logged only once.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or respond with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _Response(send)
        try:
            body = await _checked(scope, receive)
            if body is not None:
                await self._app(scope, _replay(body, receive), response.send)
        except ProblemError as problem:
            await problem.answer(scope, receive, response.send)
        except Exception as error:  # noqa: BLE001 - the handler logs it
            handler = scope["app"].exception_handlers[Exception]
            answer = await handler(Request(scope, receive), error)
            if not response.started:
                await answer(scope, receive, response.send)


class _Response:
    """A response with the headers that all responses have."""

    def __init__(self, send: "Send") -> None:
        self._send = send
        self.started = False

    async def send(self, message: "Message") -> None:
        """Send a part of the response."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS:
                headers.setdefault(name, value)
        await self._send(message)


async def _checked(scope: "Scope", receive: "Receive") -> bytes | None:
    """Return a request's whole body within the limits, or None if the client disconnected."""
    headers = scope["headers"]
    size = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > MAX_HEADERS or size > MAX_HEADERS_SIZE:
        raise ProblemError(
            "too-many-headers",
            f"send at most {MAX_HEADERS} headers with {MAX_HEADERS_SIZE:,} bytes in total",
        )
    most = await _authenticated(scope)
    try:
        async with asyncio.timeout(BODY_WITHIN):
            body = await _body(headers, receive, most)
    except TimeoutError:
        slow = f"the body must arrive within {BODY_WITHIN:g} s. Send it again"
        raise ProblemError("too-slow-a-body", slow) from None
    if not body:
        return body
    if len(body) <= _PIECE:
        check(body)
    else:
        await asyncio.to_thread(check, body)
    return body


async def _authenticated(scope: "Scope") -> int:
    """Return the body size limit for this request. A program must have a valid access token."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    headers = Headers(scope=scope)
    if not path.startswith(_FOR_PROGRAMS):
        # The page checks the cookie later. Here, it only has to be present.
        return MAX_FORM if "cookie" in headers else MAX_OPEN_BODY
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise ProblemError(
            "unauthenticated", "send an access token in the header Authorization: Bearer …"
        )
    if path == _SCRAPED:
        return MAX_OPEN_BODY
    keys: TokenCache = scope["app"].state.keys
    try:
        await keys.find(secret, address=address_of(scope) or "")
    except TenureError as error:
        raise problems.read(error) from error
    return MAX_BODY if path.startswith(_BATCHES) else MAX_JOB_BODY


async def _body(
    headers: "list[tuple[bytes, bytes]]", receive: "Receive", most: int
) -> bytes | None:
    """Read the whole body, or return None if the client disconnected."""
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > most:
            raise _too_large(most)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _too_large(most: int) -> ProblemError:
    return ProblemError(
        "too-large", f"the body must have at most {most:,} bytes here. Send less at once"
    )


def check(body: bytes) -> None:
    """Raise a problem unless the body is UTF-8 and isn't nested too deeply."""
    # A parser can't read a body without NUL bytes as UTF-16 or UTF-32, which would hide its
    # brackets from us.
    try:
        is_text = b"\0" not in body and (body.isascii() or bool(body.decode()))
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise ProblemError("bad-request", "the body must be UTF-8 without NUL. Encode it as UTF-8")
    if depth(body) > MAX_DEPTH:
        raise ProblemError("invalid", f"the body must have at most {MAX_DEPTH} levels of nesting")


def depth(body: bytes) -> int:
    """Return how deeply brackets are nested outside strings.

    Counting stops once the limit is exceeded or the body is no longer JSON. It takes linear time
    and is done in pieces, so that other threads can run in between.
    """
    if sum(body.count(opening) for opening in (b"[", b"{")) <= MAX_DEPTH:
        return 0
    # Every second part between quotes is a string. Backslashes occur only in strings.
    parts = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    levels = b"".join(parts).translate(_LEVELS, delete=_OTHERS)
    level = deepest = 0
    for start in range(0, len(levels), _PIECE):
        piece = [*accumulate(array("b", levels[start : start + _PIECE]), initial=level)]
        highest = max(piece)  # Much faster than with `deepest` as another argument.
        level, deepest = piece[-1], max(deepest, highest)
        if deepest > MAX_DEPTH or min(piece) < 0:
            break
    return deepest


def _replay(body: bytes, receive: "Receive") -> "Receive":
    read = False

    async def once() -> "Message":
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once
