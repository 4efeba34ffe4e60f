"""The addresses that a database's URL leads to: several hosts, and names with several addresses."""

import asyncio
import os
import random
import socket
from collections.abc import Iterator

from psycopg import conninfo

_PLACE = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT"}


def count_hosts(url: str) -> int:
    """How many hosts the URL names."""
    return len(list(_places(url)))


async def addresses(url: str, *, within: float) -> list[str]:
    """The URL as a connection string for each address of each host, in the order given. A name that
    is not told within so many seconds is left as it is: who connects to it says what is wrong."""
    found = [
        _at(url, place | told) for place in _places(url) for told in await _told(place, within)
    ]
    if conninfo.conninfo_to_dict(url).get("load_balance_hosts") == "random":
        random.shuffle(found)
    return found


def _at(url: str, place: dict[str, str]) -> str:
    given = conninfo.conninfo_to_dict(url)
    rest = {name: value for name, value in given.items() if name not in _PLACE}
    return conninfo.make_conninfo("", **rest, **place)


def _places(url: str) -> Iterator[dict[str, str]]:
    """Host, address and port of each; one port stands for all."""
    given = conninfo.conninfo_to_dict(url)
    lists = {
        name: str(given.get(name) or os.environ.get(variable) or "").split(",")
        for name, variable in _PLACE.items()
    }
    count = max(len(lists["host"]), len(lists["hostaddr"]))
    for nth in range(count):
        place = {
            name: values[nth] if nth < len(values) else values[0] for name, values in lists.items()
        }
        yield {name: value for name, value in place.items() if value}


async def _told(place: dict[str, str], within: float) -> list[dict[str, str]]:
    host = place.get("host", "")
    if "hostaddr" in place or not host or host.startswith(("/", "@")):
        return [{}]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within):
            told = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [{}]
    return [{"hostaddr": str(sockaddr[0])} for *_, sockaddr in told]
