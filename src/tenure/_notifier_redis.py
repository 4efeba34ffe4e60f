"""Wakeups over Redis pub/sub, next to the database's own."""

import asyncio
import atexit
import importlib
import importlib.util
import os
import threading
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tenure._log import Log
from tenure._store.engine import Notifier
from tenure.errors import ConfigError, Unreachable

_PLAIN = ("redis", "rediss", "unix")
_SENTINEL_PORT = 26379
_SHAPES = (
    "write it like redis://host:6379/0, rediss://host/0, unix:///path.sock "
    "or redis+sentinel://host1,host2/service/0"
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where Redis is: `url` as redis-py reads it and, with Sentinels, who knows the master."""

    url: str = field(repr=False)
    db: int
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def redis_address(url: str) -> RedisAddress:
    """Read a URL; ConfigError, without the URL in it, if it is none."""
    scheme, found, rest = url.partition("://")
    try:
        if found and scheme in _PLAIN:
            parts = urlsplit(url)
            number = dict(parse_qsl(parts.query)).get("db") or (
                "" if scheme == "unix" else parts.path.strip("/")
            )
            return RedisAddress(url, _db(number))
        if found and scheme in ("redis+sentinel", "rediss+sentinel"):
            return _sentinels(scheme.removesuffix("+sentinel"), rest)
    except ValueError:
        pass
    raise ConfigError(f"the Redis URL cannot be read; {_SHAPES}")


def _sentinels(scheme: str, rest: str) -> RedisAddress:
    """`[user:password@]host[:port][,host…]/service[/db][?options]`; options that begin with
    `sentinel_` are for the Sentinels, the rest and the credentials for Redis itself."""
    address, _, query = rest.partition("?")
    hosts, _, path = address.partition("/")
    credentials, at, members = hosts.rpartition("@")
    service, _, number = path.strip("/").partition("/")
    sentinels = tuple(_member(member) for member in members.split(","))
    if not service:
        raise ValueError("no service")
    options = parse_qsl(query)
    asked = [(k.removeprefix("sentinel_"), v) for k, v in options if k.startswith("sentinel_")]
    kept = urlencode([(k, v) for k, v in options if not k.startswith("sentinel_")])
    db = _db(number)
    # The host is only for the parser: the Sentinels say who the master is.
    url = f"{scheme}://{credentials}{at}master/{db}{'?' if kept else ''}{kept}"
    return RedisAddress(url, db, sentinels, unquote(service), tuple(asked))


def _member(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or _SENTINEL_PORT


def _db(text: str) -> int:
    return int(text or 0)


DEADLINE = 2.0


def client(place: RedisAddress) -> Any:
    """A sync client; it connects when first used."""
    with answered():
        made, _ = _made(place, "redis")
    return made


@asynccontextmanager
async def async_client(place: RedisAddress) -> AsyncIterator[Any]:
    """One for the async world, closed at the end."""
    # Importing redis takes a moment, in which the loop has other things to do.
    with answered():
        made, sentinels = await asyncio.to_thread(_made, place, "redis.asyncio")
    try:
        yield made
    finally:
        for each in (made, *sentinels):
            await each.aclose()


def _made(place: RedisAddress, world: str) -> tuple[Any, list[Any]]:
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


log = Log("tenure")
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LAST_WORDS = 0.5
_BREATH = 0.005
# The first may be a connection that broke while it was idle; the next is made anew.
_TRIED_AT_ONCE = 2


class PublisherThread:
    """The thread that publishes, for one process. It has at most one word per queue to say, so
    that a Redis that is away fills no memory."""

    def __init__(self, place: RedisAddress, channel: str) -> None:
        self.pid = os.getpid()
        self._place = place
        self._channel = channel
        self._waiting: set[str] = set()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._idle = True
        self._failures = 0
        self._proven = False
        atexit.register(self.close)
        threading.Thread(target=self._run, name="tenure bell", daemon=True).start()

    def publish(self, queues: Collection[str]) -> None:
        """Have it said soon."""
        with self._changed:
            self._waiting.update(queues)
            self._changed.notify_all()

    def close(self) -> None:
        """Let the thread end; what is left to say is waited for only where Redis has answered."""
        atexit.unregister(self.close)
        until = monotonic() + _LAST_WORDS
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            while self._proven and not self._failures and (self._waiting or not self._idle):
                if not self._changed.wait(max(until - monotonic(), 0)):
                    break

    def _run(self) -> None:
        redis = None
        while (queues := self._next()) is not None:
            try:
                redis = redis or client(self._place)
                with redis.pipeline(transaction=False) as batch:
                    for queue in queues:
                        batch.publish(self._channel, queue)
                    batch.execute()
            except Exception as error:  # noqa: BLE001 - whatever it is, enqueues go on without
                self._failed(queues, error)
            else:
                self._published()
        if redis is not None:
            redis.close()

    def _next(self) -> set[str] | None:
        """What there is to say, once there is something; None when all is said at the end."""
        with self._changed:
            self._idle = True
            self._changed.notify_all()
            while not self._waiting:
                if self._closing.is_set():
                    return None
                self._changed.wait()
            queues, self._waiting = self._waiting, set()
            self._idle = False
            return queues

    def _failed(self, queues: set[str], error: Exception) -> None:
        """Say it later, ever more slowly."""
        with self._changed:
            self._failures += 1
            if not self._closing.is_set():
                self._waiting |= queues
        over = self._failures - _TRIED_AT_ONCE
        if over == 0:
            log.warning("bell: Redis does not answer: %s; workers poll meanwhile", error)
        if over >= 0:
            # Not woken by those who ring: there is nothing to do for them yet.
            self._closing.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(over, 10)))

    def _published(self) -> None:
        if self._failures >= _TRIED_AT_ONCE:
            log.info("bell: Redis answers again")
        self._failures = 0
        self._proven = True
        # What is rung meanwhile is said in one breath: a burst costs its program little.
        self._closing.wait(_BREATH)


_SIGN_OF_LIFE = 5.0


class RedisNotifier:
    """One Redis, or one service of its Sentinels, as the carrier of wakeups."""

    def __init__(self, url: str, *, schema: str) -> None:
        if importlib.util.find_spec("redis") is None:
            raise ConfigError(
                "a Redis is configured, but its client is not installed; "
                'run: pip install "tenure[redis]"'
            )
        self._place = redis_address(url)
        # Channels know no database number; two that share a server by it stay apart.
        self._channel = f"tenure:{self._place.db}:{schema}"
        self._lock = threading.Lock()
        self._ringer: PublisherThread | None = None

    def publish(self, queues: Collection[str]) -> None:
        """Say that there may be something in these queues; without a wait, without an error."""
        with self._lock:
            if self._ringer is None or self._ringer.pid != os.getpid():
                # The parent's thread is the parent's.
                self._ringer = PublisherThread(self._place, self._channel)
            self._ringer.publish(queues)

    async def listen(self) -> AsyncIterator[str]:
        """What is rung; an empty text at first and now and then, as a sign of life."""
        async with async_client(self._place) as client, client.pubsub() as pubsub:
            with answered():
                await pubsub.subscribe(self._channel)
            asked = False
            while True:
                with answered():
                    message = await pubsub.get_message(timeout=_SIGN_OF_LIFE)
                    if message is None and not asked:
                        await pubsub.ping()
                if message is None and asked:
                    raise Unreachable(f"Redis gave no sign of life in {_SIGN_OF_LIFE:g} s")
                asked = message is None
                if message is not None:
                    yield message["data"] if message["type"] == "message" else ""

    def check(self) -> None:
        """Unreachable, with the reason, unless Redis takes what is published."""
        with answered(), client(self._place) as connected:
            connected.publish(self._channel, "")

    def close(self) -> None:
        """Publish what was rung, if it can be done at once, and let the thread end."""
        with self._lock:
            ringer, self._ringer = self._ringer, None
        if ringer is not None and ringer.pid == os.getpid():
            ringer.close()


def _is_a_notifier(bell: RedisNotifier) -> Notifier:
    """Checked by the type checker."""
    return bell
