"""The attacks, each as a process: `python -m proof.abuse.attacks NAME URL SECRET SECONDS`.

Each prints one line of JSON when it ends: how often it did what, by status.
"""

from __future__ import annotations

import asyncio
import json
import resource
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx

from tenure._rules import access

SLOW = 1_100
_LINE_EVERY = 5.0
BODY = 4 * 1024 * 1024
MADE_UP = 2_000
_AT_ONCE = 300
_PAYLOADS = 20
_NAMES = 100
_QUEUE = "abuse.own"

Attack = Callable[[str, str, float], Awaitable["Counter[str]"]]


async def slow_headers(url: str, _secret: str, seconds: float) -> Counter[str]:
    """Hold 1,100 connections with half a header, and open a new one for each that is closed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    place, until, count = urlsplit(url), time.monotonic() + seconds, Counter[str]()

    async def hold() -> None:
        while time.monotonic() < until:
            try:
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
            except OSError:
                count["refused"] += 1
                await asyncio.sleep(0.5)
                continue
            count["opened"] += 1
            with suppress(OSError):
                writer.write(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
                while time.monotonic() < until:
                    writer.write(b"X-More: x\r\n")
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LINE_EVERY):
                            if not await reader.read(1000):
                                break
                count["closed by the server"] += 1
            writer.close()
            await asyncio.sleep(0.2)

    await asyncio.gather(*(hold() for _ in range(SLOW)))
    return count


async def brackets(url: str, _secret: str, seconds: float) -> Counter[str]:
    """Send 4 MiB of brackets without a token, four at a time. The sender does not wait politely:
    it writes the whole body whatever the answer."""
    body = ("[" * 64 + "]" * 64) * (BODY // 128)
    head = f"POST /v1/jobs:batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    place, until = urlsplit(url), time.monotonic() + seconds
    request, count = (head + body).encode(), Counter[str]()

    def send() -> None:
        while time.monotonic() < until:
            answer = b""
            with suppress(OSError):
                address = (place.hostname or "", place.port or 0)
                with socket.create_connection(address, timeout=30) as sending:
                    with suppress(OSError):
                        sending.sendall(request)
                    answer = sending.recv(100)
            count[answer[9:12].decode() or "cut off"] += 1

    await asyncio.gather(*(asyncio.to_thread(send) for _ in range(4)))
    return count


async def made_up(url: str, _secret: str, seconds: float) -> Counter[str]:
    """Send 2,000 made-up tokens with right checksums, 300 at a time, again and again."""
    tokens = [access.secret(secrets.token_bytes(access.ENTROPY)) for _ in range(MADE_UP)]
    place, until, count = urlsplit(url), time.monotonic() + seconds, Counter[str]()

    async def send(nth: int) -> None:
        while time.monotonic() < until:
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                while time.monotonic() < until:
                    nth += _AT_ONCE + 1
                    # Half of them are tried again, half are new each time.
                    new = access.secret(secrets.token_bytes(access.ENTROPY))
                    token = new if nth % 2 else tokens[nth % MADE_UP]
                    head = "GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    head += f"Authorization: Bearer {token}\r\n\r\n"
                    writer.write(head.encode())
                    async with asyncio.timeout(30):
                        answer = await reader.readuntil(b"}")
                    count[answer[9:12].decode()] += 1
                writer.close()

    await asyncio.gather(*(send(nth) for nth in range(_AT_ONCE)))
    return count


def _hostile() -> list[dict[str, Any]]:
    """Arguments whose redaction is as expensive as 256 KiB allow."""
    hidden = {f"token{n}": f"{n:05d}zz" for n in range(1000)}
    return [
        {"s": "a=" * 125_000},
        {f"k{n}": 1 for n in range(20_000)},
        {**hidden, "l": ["b"] * 40_000},
        {f"aBcDeFgHiJ{n}": n for n in range(10_000)},
        {"l": ["password=x"] * 18_000},
    ]


async def payloads(url: str, secret: str, seconds: float) -> Counter[str]:
    """Enqueue the most expensive arguments with an enqueue-only token. An operator lists them."""
    until, count = time.monotonic() + seconds, Counter[str]()
    headers = {"Authorization": f"Bearer {secret}"}
    corpus = _hostile()
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=headers) as client:
        sent = 0
        while time.monotonic() < until:
            # An hour's worth would only fill the disk: the list shows the newest.
            if sent < _PAYLOADS * len(corpus):
                job = {"task": "t", "queue": _QUEUE, "args": corpus[sent % len(corpus)]}
                answer = await client.post("/v1/jobs", json=job)
                count[str(answer.status_code)] += 1
                sent += 1
            else:
                await asyncio.sleep(0.5)
    return count


async def names(url: str, secret: str, seconds: float) -> Counter[str]:
    """Acquire from 100 invented queues at a time, with a work token for `abuse.*`."""
    until, count, nth = time.monotonic() + seconds, Counter[str](), 0
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=headers) as client:
        while time.monotonic() < until:
            queues = [f"abuse.{nth + n}" for n in range(_NAMES)]
            nth += _NAMES
            request = {"queues": queues, "worker": {"name": f"invented-{nth}"}}
            try:
                answer = await client.post("/v1/leases:acquire", json=request)
                count[str(answer.status_code)] += 1
            except httpx.HTTPError as error:
                count[type(error).__name__] += 1
    count["names"] = nth
    return count


ATTACKS: dict[str, Attack] = {
    "slow_headers": slow_headers,
    "brackets": brackets,
    "made_up": made_up,
    "payloads": payloads,
    "names": names,
}

if __name__ == "__main__":
    name, url, secret, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(ATTACKS[name](url, secret, float(seconds)))))  # type: ignore[arg-type] # a coroutine function each
