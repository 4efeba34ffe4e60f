"""Clients of redis-py, sync and async, for a place. Redis is imported when one is made."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from tenure._bells.urls import Place
from tenure.errors import Unreachable

DEADLINE = 2.0


def client(place: Place) -> Any:
    """A sync client; it connects when first used."""
    with answered():
        made, _ = _made(place, "redis")
    return made


@asynccontextmanager
async def async_client(place: Place) -> AsyncIterator[Any]:
    """One for the async world, closed at the end."""
    # Importing redis takes a moment, in which the loop has other things to do.
    with answered():
        made, sentinels = await asyncio.to_thread(_made, place, "redis.asyncio")
    try:
        yield made
    finally:
        for each in (made, *sentinels):
            await each.aclose()


def _made(place: Place, world: str) -> tuple[Any, list[Any]]:
    """A client, and those of its Sentinels. It tries once: who uses it knows when to try again."""
    kind = importlib.import_module(world).Redis
    retry = importlib.import_module(f"{world}.retry").Retry
    backoff = importlib.import_module("redis.backoff").NoBackoff
    options = {
        "socket_timeout": DEADLINE,
        "socket_connect_timeout": DEADLINE,
        "decode_responses": True,
        "retry": retry(backoff(), 0),
    }
    if not place.sentinels:
        return kind.from_url(place.url, **options), []
    given = importlib.import_module("redis.connection").parse_url(place.url)
    for known_by_the_sentinels in ("host", "port"):
        given.pop(known_by_the_sentinels, None)
    encrypted = {"ssl": True} if given.pop("connection_class", None) else {}
    shared = {k: v for k, v in given.items() if k.startswith("ssl_")} | encrypted
    sentinel = importlib.import_module(f"{world}.sentinel").Sentinel(
        place.sentinels,
        sentinel_kwargs=options | shared | dict(place.sentinel_options),
        **options | given | encrypted,
    )
    return sentinel.master_for(place.service), sentinel.sentinels


@contextmanager
def answered() -> Iterator[None]:
    """Unreachable for what redis-py raises, also of an option in the URL that it does not take."""
    redis = importlib.import_module("redis")
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Unreachable(f"Redis cannot be asked: {error}; mend its URL") from error
    except (redis.RedisError, OSError) as error:
        raise Unreachable(f"Redis does not answer: {error}") from error
