"""Wakeups over Redis pub/sub, in addition to the database's own."""

import asyncio
import atexit
import importlib
import importlib.util
import os
import random
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tenure._log import Log
from tenure._store.engine import Notifier
from tenure.errors import ConfigError, Unreachable

_PLAIN = ("redis", "rediss", "unix")
_PORT = 6379
_SENTINEL_PORT = 26379
_SHAPES = (
    "write it like redis://host:6379/0, rediss://host/0, unix:///path.sock, "
    "redis+sentinel://host1,host2/service/0 or redis+cluster://host1,host2"
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The Redis address: a `url` for redis-py and, for Sentinel, the hosts and service name.

    A cluster has the URLs of its `nodes` instead.
    """

    url: str = field(repr=False)
    db: int
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    nodes: tuple[str, ...] = field(default=(), repr=False)


def redis_address(url: str) -> RedisAddress:
    """Parse a URL. Raise ConfigError, without quoting the URL, if it is invalid."""
    scheme, separator, rest = url.partition("://")
    try:
        if separator and scheme in _PLAIN:
            parts = urlsplit(url)
            number = dict(parse_qsl(parts.query)).get("db") or (
                "" if scheme == "unix" else parts.path.strip("/")
            )
            return RedisAddress(url, _db(number))
        if separator and scheme in ("redis+sentinel", "rediss+sentinel"):
            return _sentinels(scheme.removesuffix("+sentinel"), rest)
        if separator and scheme in ("redis+cluster", "rediss+cluster"):
            return _cluster(scheme.removesuffix("+cluster"), rest)
    except ValueError:
        pass
    raise ConfigError(f"the Redis URL is not valid; {_SHAPES}")


def _sentinels(scheme: str, rest: str) -> RedisAddress:
    """Parse `[user:password@]host[:port][,host…]/service[/db][?options]`.

    Options that start with `sentinel_` apply to the Sentinels. The other options and the
    credentials apply to Redis.
    """
    address, _, query = rest.partition("?")
    hosts, _, path = address.partition("/")
    credentials, at, members = hosts.rpartition("@")
    service, _, number = path.strip("/").partition("/")
    sentinels = tuple(_member(member, _SENTINEL_PORT) for member in members.split(","))
    if not service:
        raise ValueError("no service")
    options = parse_qsl(query)
    sentinel_options = [
        (k.removeprefix("sentinel_"), v) for k, v in options if k.startswith("sentinel_")
    ]
    kept = urlencode([(k, v) for k, v in options if not k.startswith("sentinel_")])
    db = _db(number)
    # The host is only a placeholder for the parser. The Sentinels report the actual master.
    url = f"{scheme}://{credentials}{at}master/{db}{'?' if kept else ''}{kept}"
    return RedisAddress(url, db, sentinels, unquote(service), tuple(sentinel_options))


def _cluster(scheme: str, rest: str) -> RedisAddress:
    """Parse `[user:password@]host[:port][,host…][/number][?options]`.

    A cluster has no numbered databases. Here, the number is only part of the channel's name.
    """
    address, _, query = rest.partition("?")
    hosts, _, number = address.partition("/")
    credentials, at, members = hosts.rpartition("@")
    nodes = tuple(
        f"{scheme}://{credentials}{at}{f'[{host}]' if ':' in host else host}:{port}"
        f"{'?' if query else ''}{query}"
        for host, port in (_member(member, _PORT) for member in members.split(","))
    )
    if "db" in dict(parse_qsl(query)):
        raise ValueError("a database")
    return RedisAddress(nodes[0], _db(number.strip("/")), nodes=nodes)


def _member(text: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or port


def _db(text: str) -> int:
    return int(text or 0)


DEADLINE = 2.0


def client(place: RedisAddress) -> Any:
    with answered():
        redis, _ = _connect(place, "redis")
    return redis


@asynccontextmanager
async def async_client(place: RedisAddress) -> AsyncIterator[Any]:
    # Importing redis takes a moment, which must not block the loop.
    with answered():
        redis, sentinels = await asyncio.to_thread(_connect, place, "redis.asyncio")
    try:
        yield redis
    finally:
        for each in (redis, *sentinels):
            await each.aclose()


def _connect(place: RedisAddress, module: str) -> tuple[Any, list[Any]]:
    """Return a client and its Sentinels' clients. They try once and leave retries to the caller."""
    kind = importlib.import_module(module).Redis
    retry = importlib.import_module(f"{module}.retry").Retry
    backoff = importlib.import_module("redis.backoff").NoBackoff
    options = {
        "socket_timeout": DEADLINE,
        "socket_connect_timeout": DEADLINE,
        "decode_responses": True,
        "retry": retry(backoff(), 0),
    }
    if place.nodes:
        return kind.from_url(_node(place.nodes), **options), []
    if not place.sentinels:
        return kind.from_url(place.url, **options), []
    given = importlib.import_module("redis.connection").parse_url(place.url)
    for known_by_the_sentinels in ("host", "port"):
        given.pop(known_by_the_sentinels, None)
    encrypted = {"ssl": True} if given.pop("connection_class", None) else {}
    shared = {k: v for k, v in given.items() if k.startswith("ssl_")} | encrypted
    sentinel = importlib.import_module(f"{module}.sentinel").Sentinel(
        place.sentinels,
        sentinel_kwargs=options | shared | dict(place.sentinel_options),
        **options | given | encrypted,
    )
    return sentinel.master_for(place.service), sentinel.sentinels


def _node(urls: Collection[str]) -> str:
    """Return the URL of a node in a working cluster.

    A message that is published at any node reaches the subscribers of all nodes. Messages have no
    keys, so nodes don't redirect them. Any node will do, including a replica.
    """
    failure: Exception | None = None
    redis = importlib.import_module("redis")
    for url in random.sample(list(urls), len(urls)):
        try:
            with _connect(RedisAddress(url, 0), "redis")[0] as node:
                _require_ok(_cluster_info(node))
        except (redis.RedisError, OSError, Unreachable) as error:
            failure = error
        else:
            return url
    raise failure or Unreachable("the Redis cluster has no nodes")


_CLUSTER_INFO = "CLUSTER INFO"
# Where the user's ACL doesn't allow the command, the connection itself is the only sign.
_NOT_ALLOWED: Mapping[str, str] = {"cluster_state": "ok"}
_CHECK_EVERY = 2.0


def _cluster_info(redis: Any) -> Mapping[str, str]:
    try:
        info: Mapping[str, str] = redis.execute_command(_CLUSTER_INFO)
    except importlib.import_module("redis").exceptions.NoPermissionError:
        return _NOT_ALLOWED
    return info


async def _cluster_info_async(redis: Any) -> Mapping[str, str]:
    try:
        info: Mapping[str, str] = await redis.execute_command(_CLUSTER_INFO)
    except importlib.import_module("redis").exceptions.NoPermissionError:
        return _NOT_ALLOWED
    return info


def _require_ok(info: Mapping[str, str]) -> None:
    if info.get("cluster_state") != "ok":
        raise Unreachable("Redis is not responding: its cluster reports that it is down")


class ClusterCheck:
    """Says when to ask a node about its cluster.

    A node that has lost the others still responds. But messages no longer reach all subscribers.
    """

    def __init__(self, place: RedisAddress) -> None:
        self._is_cluster = bool(place.nodes)
        # The node was just asked.
        self._next_at = monotonic() + _CHECK_EVERY

    @property
    def due(self) -> bool:
        if not self._is_cluster or monotonic() < self._next_at:
            return False
        self._next_at = monotonic() + _CHECK_EVERY
        return True


@contextmanager
def answered() -> Iterator[None]:
    """Raise Unreachable for redis-py's errors, including an unknown option in the URL."""
    redis = importlib.import_module("redis")
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Unreachable(f"cannot use Redis: {error}; fix its URL") from error
    except (redis.RedisError, OSError) as error:
        raise Unreachable(f"Redis is not responding: {error}") from error


log = Log("tenure")
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_CLOSE_WITHIN = 0.5
_BATCH_PAUSE = 0.005
# The first connection may have broken while it was idle. The second attempt uses a new one.
_TRIED_AT_ONCE = 2


class PublisherThread:
    """A process's publishing thread, with at most one pending wakeup per queue."""

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
        threading.Thread(target=self._run, name="tenure redis", daemon=True).start()

    def publish(self, queues: Collection[str]) -> None:
        with self._changed:
            self._waiting.update(queues)
            self._changed.notify_all()

    def close(self) -> None:
        """Let the thread end. Wait for pending wakeups only if Redis ever responded."""
        atexit.unregister(self.close)
        until = monotonic() + _CLOSE_WITHIN
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            while self._proven and not self._failures and (self._waiting or not self._idle):
                if not self._changed.wait(max(until - monotonic(), 0)):
                    break

    def _run(self) -> None:
        redis = None
        check = ClusterCheck(self._place)
        while (queues := self._next()) is not None:
            try:
                if redis is None:
                    redis, check = client(self._place), ClusterCheck(self._place)
                with redis.pipeline(transaction=False) as batch:
                    for queue in queues:
                        batch.publish(self._channel, queue)
                    batch.execute()
                if check.due:
                    _require_ok(_cluster_info(redis))
            except Exception as error:  # noqa: BLE001 - enqueues continue without it
                if redis is not None:
                    with suppress(Exception):
                        redis.close()
                # The next one may be a client of another node.
                redis = None
                self._failed(queues, error)
            else:
                self._published()
        if redis is not None:
            redis.close()

    def _next(self) -> set[str] | None:
        """Wait for wakeups and return them, or None at shutdown once all are sent."""
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
        """Retry later, after an increasing pause."""
        with self._changed:
            self._failures += 1
            if not self._closing.is_set():
                self._waiting |= queues
        over = self._failures - _TRIED_AT_ONCE
        if over == 0:
            log.warning("redis: not responding, workers are polling instead: %s", error)
        if over >= 0:
            # New wakeups must not shorten the pause.
            self._closing.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(over, 10)))

    def _published(self) -> None:
        if self._failures >= _TRIED_AT_ONCE:
            log.info("redis: responding again")
        self._failures = 0
        self._proven = True
        # Wakeups that arrive during this pause are sent together, so a burst costs little.
        self._closing.wait(_BATCH_PAUSE)


_SIGN_OF_LIFE = 5.0


class RedisNotifier:
    """Carries wakeups over one Redis server, one Sentinel service or one cluster."""

    def __init__(self, url: str, *, schema: str) -> None:
        if importlib.util.find_spec("redis") is None:
            raise ConfigError(
                "Redis is configured, but its client is not installed; "
                'run: pip install "tenure[redis]"'
            )
        self._place = redis_address(url)
        # Channels span a server's databases. Without the number, installations would mix.
        self._channel = f"tenure:{self._place.db}:{schema}"
        self._lock = threading.Lock()
        self._publisher: PublisherThread | None = None

    def publish(self, queues: Collection[str]) -> None:
        """Wake these queues' workers, without waiting or raising."""
        with self._lock:
            if self._publisher is None or self._publisher.pid != os.getpid():
                # A forked child doesn't inherit its parent's thread.
                self._publisher = PublisherThread(self._place, self._channel)
            self._publisher.publish(queues)

    async def listen(self) -> AsyncIterator[str]:
        """Yield wakeups, and occasionally an empty string as a heartbeat."""
        async with async_client(self._place) as client, client.pubsub() as pubsub:
            with answered():
                await pubsub.subscribe(self._channel)
            pinged = False
            check = ClusterCheck(self._place)
            while True:
                with answered():
                    if check.due:
                        _require_ok(await _cluster_info_async(client))
                    message = await pubsub.get_message(timeout=_SIGN_OF_LIFE)
                    if message is None and not pinged:
                        await pubsub.ping()
                if message is None and pinged:
                    raise Unreachable(f"Redis did not respond within {_SIGN_OF_LIFE:g} s")
                pinged = message is None
                if message is not None:
                    yield message["data"] if message["type"] == "message" else ""

    def check(self) -> None:
        """Raise Unreachable, with the reason, unless Redis accepts a message."""
        with answered(), client(self._place) as connected:
            connected.publish(self._channel, "")

    def close(self) -> None:
        """Publish pending wakeups if that doesn't require waiting, then end the thread."""
        with self._lock:
            publisher, self._publisher = self._publisher, None
        if publisher is not None and publisher.pid == os.getpid():
            publisher.close()


def _is_a_notifier(notifier: RedisNotifier) -> Notifier:
    return notifier
