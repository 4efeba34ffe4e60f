"""Connect to PostgreSQL: hosts, keepalives and pooler detection.

A pooler in transaction mode shares sessions between clients, so we use no session features behind
one. A pooler reports a made-up process id, so we detect it by comparing that id with the one that
the server reports.
"""

import asyncio
import contextlib
import ipaddress
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import AsyncConnection, Connection, OperationalError, conninfo
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

from tenure.errors import ConfigError, Unreachable

# If a statement gets no response within this time, its outcome is unknown.
DEADLINE = timedelta(seconds=15)
_PLACE = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT"}


def count_hosts(url: str) -> int:
    return len(list(_places(url)))


async def addresses(url: str, *, within: float) -> list[str]:
    """Return a connection string for each address of each host.

    Keep names that can't be resolved.
    """
    targets = [
        _at(url, place | address)
        for place in _places(url)
        for address in await _addresses(place, within)
    ]
    if conninfo.conninfo_to_dict(url).get("load_balance_hosts") == "random":
        random.shuffle(targets)
    return targets


def _at(url: str, place: dict[str, str]) -> str:
    given = conninfo.conninfo_to_dict(url)
    rest = {name: value for name, value in given.items() if name not in _PLACE}
    return conninfo.make_conninfo("", **rest, **place)


def _places(url: str) -> Iterator[dict[str, str]]:
    """Yield each host with its address and port.

    If there's only one port, it applies to all hosts.
    """
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


async def _addresses(place: dict[str, str], within: float) -> list[dict[str, str]]:
    host = place.get("host", "")
    if "hostaddr" in place or not host or host.startswith(("/", "@")):
        return [{}]
    with contextlib.suppress(ValueError):
        return [{"hostaddr": str(ipaddress.ip_address(host))}]
    try:
        async with asyncio.timeout(within):
            resolved = await _look_up(host)
    except (OSError, UnicodeError):
        return [{}]
    return [{"hostaddr": address} for address in resolved]


def _look_up(host: str) -> asyncio.Future[list[str]]:
    """Resolve a host name in a separate thread.

    We don't use the event loop's executor, because handlers may fill it or shut it down.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def resolve(act: Callable[[Any], None], value: object) -> None:
        if not answer.done():
            act(value)

    def look_up() -> None:
        act: Callable[[Any], None] = answer.set_result
        value: object
        try:
            infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            value = [str(sockaddr[0]) for *_, sockaddr in infos]
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            act, value = answer.set_exception, error
        with contextlib.suppress(RuntimeError):  # The loop is closed, so nothing waits.
            loop.call_soon_threadsafe(resolve, act, value)

    threading.Thread(target=look_up, name="tenure-names", daemon=True).start()
    return answer


RV = TypeVar("RV")
_SECONDS = DEADLINE.total_seconds()
_ASK = "SELECT pg_backend_pid()"
# Start of our options; the URL's options come first.
OUR_OPTIONS = "-c enable_seqscan="
# PgBouncer's words for it, and RDS Proxy's.
_REFUSED = ("unsupported startup parameter", "command-line options")
# Products that speak PostgreSQL's protocol, with how to tell them from it.
_OTHERS: Mapping[str, Callable[[Callable[[str], str]], bool]] = {
    "CockroachDB": lambda status: bool(status("crdb_version")),
    "YugabyteDB": lambda status: "-YB-" in status("server_version"),
    "Amazon Redshift": lambda status: status("server_version").startswith("8.0."),
    "Spanner": lambda status: "Spanner" in status("server_version"),
}
# Addresses whose pooler rejects options. We send options to such a pooler only once.
_without_options: set[tuple[object, ...]] = set()


class DetectingConnection(Connection[TupleRow]):
    """A connection that knows whether it goes through a pooler."""

    behind_pooler = False
    deadline: float | None = None

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect, without options if a pooler rejects them, and detect a pooler."""
        fit = _fit(conninfo)
        try:
            connection = super().connect(fit, **kwargs)
        except OperationalError as error:
            connection = super().connect(_bare(fit, error), **kwargs)
        with _or_closed(connection):
            _check_product(connection)
            connection.detect_pooler()
        return connection

    def detect_pooler(self) -> None:
        """Detect a pooler.

        If there is one, don't prepare statements on this connection, even for handlers.
        """
        lasting, self.deadline = self.deadline, _SECONDS
        row = self.execute(_ASK).fetchone()
        self.deadline = lasting
        if not self.autocommit:
            self.rollback()
        self.behind_pooler = row != (self.pgconn.backend_pid,)
        if self.behind_pooler:
            self.prepare_threshold = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but not past the deadline. After that, the outcome is unknown."""
        if timeout is not None or self.deadline is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.deadline)
        except psycopg.errors._WaitTimeout as error:  # noqa: SLF001 - no public name
            self.pgconn.finish()
            raise psycopg.OperationalError("no answer within the deadline") from error


class AsyncDetectingConnection(AsyncConnection[TupleRow]):
    behind_pooler = False

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        fit = _fit(conninfo)
        try:
            connection = await super().connect(fit, **kwargs)
        except OperationalError as error:
            connection = await super().connect(_bare(fit, error), **kwargs)
        with _or_closed(connection):
            _check_product(connection)
            await connection.detect_pooler()
        return connection

    async def detect_pooler(self) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                row = await (await self.execute(_ASK)).fetchone()
        except TimeoutError as error:
            raise OperationalError("no answer within the deadline") from error
        if not self.autocommit:
            await self.rollback()
        self.behind_pooler = row != (self.pgconn.backend_pid,)
        if self.behind_pooler:
            self.prepare_threshold = None


@contextmanager
def _or_closed(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[None]:
    """Close the connection if an error occurs, because the caller never receives it."""
    try:
        yield
    except BaseException:
        connection.pgconn.finish()
        raise


def _check_product(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """Raise ConfigError for a server that isn't PostgreSQL, though it speaks its protocol."""

    def status(name: str) -> str:
        return (connection.pgconn.parameter_status(name.encode()) or b"").decode(errors="replace")

    for product, is_this in _OTHERS.items():
        if is_this(status):
            raise ConfigError(
                f"{product} is not supported: it lacks the row locks and the history that leases "
                "need; use PostgreSQL 15 or newer, or a service that runs it"
            )


def _fit(text: str) -> str:
    """Return the connection string, without our options if this address rejects them."""
    return _stripped(text) if _place(text) in _without_options else text


def _bare(text: str, error: OperationalError) -> str:
    """Return the connection string without our options if they were rejected, else raise."""
    if OUR_OPTIONS not in text or not any(words in str(error) for words in _REFUSED):
        raise error
    _without_options.add(_place(text))
    return _stripped(text)


def _stripped(text: str) -> str:
    given = conninfo.conninfo_to_dict(text)
    callers, _, _ = str(given.get("options") or "").partition(OUR_OPTIONS)
    return conninfo.make_conninfo("", **(given | {"options": callers.strip() or None}))


def _place(text: str) -> tuple[object, ...]:
    given = conninfo.conninfo_to_dict(text)
    return tuple(given.get(name) for name in ("host", "hostaddr", "port", "dbname", "user"))


# These end half-open connections quickly on both sides. A connection to a dropped peer hung for
# over 40 s with libpq's defaults, and for 3.4 s with these settings.
_CLIENT: dict[str, str | int] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 3000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
}
# A small table's statistics would turn each of our statements into a sequential scan, so we disable
# those. JIT must be off too, because a disabled scan looks so expensive that PostgreSQL would
# compile it, at a thousand times the cost.
_SERVER = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "default_transaction_isolation": "read\\ committed",
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_user_timeout": "3000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


# The same settings behind a pooler, sent with each transaction and valid only within it.
BEGIN_WITH_SETTINGS = "; ".join(
    [
        "BEGIN ISOLATION LEVEL READ COMMITTED",
        *(
            f"SET LOCAL {name} = '{value}'"
            for name, value in _SERVER.items()
            if not name.startswith(("tcp_", "default_"))
        ),
    ]
)


def own(url: str, *, name: str = "tenure", **settings: str) -> str:
    """Return the connection string for our own connections.

    `settings` override the server's settings.
    """
    given = conninfo.conninfo_to_dict(url)
    options = " ".join(f"-c {key}={value}" for key, value in (_SERVER | settings).items())
    merged: dict[str, str | int | None] = {**_CLIENT, "application_name": name, **given}
    merged["options"] = f"{given.get('options') or ''} {options}".strip()
    return conninfo.make_conninfo("", **merged)


def callers(url: str, *, name: str) -> str:
    """Return the connection string for users' SQL. Only the network timeouts are ours."""
    given = conninfo.conninfo_to_dict(url)
    return conninfo.make_conninfo("", **{**_CLIENT, "application_name": name, **given})


def connect(url: str, *, name: str = "tenure", **settings: str) -> DetectingConnection:
    """Open one of our own connections, in autocommit."""
    with _unreachable():
        return DetectingConnection.connect(own(url, name=name, **settings), autocommit=True)


async def aconnect(url: str, *, name: str = "tenure", **settings: str) -> AsyncDetectingConnection:
    with _unreachable():
        return await AsyncDetectingConnection.connect(
            own(url, name=name, **settings), autocommit=True
        )


@contextmanager
def _unreachable() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        if "startup parameter" in str(error):
            raise Unreachable(
                f"a pooler refuses an option of the database URL: {error}; remove it from the "
                "URL, or set in PgBouncer: ignore_startup_parameters = options"
            ) from error
        raise Unreachable(
            f"cannot connect to a writable PostgreSQL: {error}; "
            "check that the server runs, that the address is right and that it is not a standby"
        ) from error


def database_name(url: str) -> str:
    """Return the database name, or an empty string if the URL leaves it to libpq."""
    return str(conninfo.conninfo_to_dict(url).get("dbname") or "")


def beside(url: str, database: str) -> str:
    if "://" not in url:
        return conninfo.make_conninfo(url, dbname=database)
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "dbname"]
    return parts._replace(path=f"/{quote(database)}", query=urlencode(kept)).geturl()
