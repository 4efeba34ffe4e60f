"""A network where every address is this machine: what connects anywhere is seen.

    unshare --net --mount python -m tests.kinds.ssrf_world

It has a resolver of its own, a listener on the ports that matter, and a sender with the rules of a
worker. It prints the outcome of each URL, and which addresses the listener saw, as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from tenure._model.outcome import ControlFlow
from tenure.errors import InvalidValue
from tenure.kinds.http.configuration import parse_configuration
from tenure.kinds.http.delivery import HttpSender
from tenure.kinds.http.url import read_url
from tests.kinds.ssrf_corpus import CORPUS, PUBLIC

PORTS = (80, 443, 22, 25, 53, 2375, 5432, 6379, 8080, 9200, 10250, 11211)
GOOD = IPv4Address("93.184.216.34")
REBINDS = 40
seen: list[str] = []
lookups = itertools.count()


def addresses(name: str) -> list[IPv4Address | IPv6Address]:
    """What the resolver answers. `rebind.test` alternates, with a time to live of zero."""
    if match := re.fullmatch(r"v4-(\d+)-(\d+)-(\d+)-(\d+)\.test", name):
        return [IPv4Address(".".join(match.groups()))]
    if match := re.fullmatch(r"v6-([0-9a-f]{32})\.test", name):
        return [IPv6Address(int(match[1], 16))]
    if match := re.fullmatch(r"both-(\d+)-(\d+)-(\d+)-(\d+)\.test", name):
        return [GOOD, IPv4Address(".".join(match.groups()))]
    if name == "rebind.test":
        return [GOOD if next(lookups) % 2 == 0 else IPv4Address("127.0.0.1")]
    return []


def answer(query: bytes) -> bytes:
    """A DNS answer for one question."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    kind = int.from_bytes(query[at + 1 : at + 3], "big")
    question = query[12 : at + 5]
    name = ".".join(labels)
    # The alternating name must not count a question about the other family.
    found = [] if kind == 28 and name == "rebind.test" else addresses(name)
    records = [one.packed for one in found if one.version == {1: 4, 28: 6}.get(kind)]
    head = query[:2] + b"\x81\x80\x00\x01" + len(records).to_bytes(2, "big") + b"\x00\x00\x00\x00"
    return (
        head
        + question
        + b"".join(
            b"\xc0\x0c"
            + kind.to_bytes(2, "big")
            + b"\x00\x01\x00\x00\x00\x00"
            + len(packed).to_bytes(2, "big")
            + packed
            for packed in records
        )
    )


def resolve_names() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.53", 53))
        while True:
            query, client = server.recvfrom(512)
            server.sendto(answer(query), client)


def listen(port: int) -> None:
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                where = ip_address(connection.getsockname()[0])
                mapped = where.ipv4_mapped if isinstance(where, IPv6Address) else None
                seen.append(f"{mapped or where} {port}")
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


async def outcome(sender: HttpSender, url: str) -> str:
    try:
        response = await sender.send("GET", read_url(url), [], b"")
    except InvalidValue:
        return "invalid"
    except ControlFlow as error:
        return f"{type(error).__name__}: {error}"
    return str(response.status)


async def judge() -> dict[str, object]:
    sender = HttpSender(parse_configuration({"total_timeout": 3, "connect_timeout": 2}))
    refused = {url: await outcome(sender, url) for url in CORPUS}
    from_corpus, seen[:] = list(seen), []
    public = {url: await outcome(sender, url) for url in PUBLIC}
    from_public, seen[:] = list(seen), []
    rebound = []
    for _ in range(REBINDS):
        rebound.append(await outcome(sender, "http://rebind.test/"))
        await sender.aclose()  # the next one looks the name up again
    await asyncio.sleep(0.1)
    return {
        "refused": refused,
        "seen": from_corpus,
        "public": public,
        "public_seen": from_public,
        "rebound": rebound,
        "rebound_seen": list(seen),
    }


def main() -> None:
    for words in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo"),
        ("ip", "-6", "route", "add", "local", "::/0", "dev", "lo"),
    ):
        subprocess.run(words, check=True)
    with tempfile.TemporaryDirectory() as directory:
        for name, text in {
            "resolv.conf": "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n",
            "hosts": "127.0.0.1 localhost\n",
        }.items():
            Path(directory, name).write_text(text)
            mount = ("mount", "--bind", str(Path(directory, name)), f"/etc/{name}")
            subprocess.run(mount, check=True)
        threading.Thread(target=resolve_names, daemon=True).start()
        for port in PORTS:
            threading.Thread(target=listen, args=(port,), daemon=True).start()
        json.dump(asyncio.run(judge()), sys.stdout)


if __name__ == "__main__":
    main()
