"""Limit the number of open connections, and how long clients may take to send headers and read
responses.

When a limit is reached, the server closes the connection that has waited longest for its client.
Clients that send nothing therefore displace only each other.
"""

import asyncio
import logging
import resource
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

log: logging.Logger = logging.getLogger("tenure")

# The time allowed from the start of the connection, or from the previous response, to the end of
# the headers. A client that gets a response before it has sent its whole body has this long to send
# the rest.
HEADERS_WITHIN = 10.0
# How long a client may take to read a full connection buffer, which is 64 KiB.
READ_WITHIN = 20.0
# Open files to reserve for the database, the log, and connections that were just accepted.
_OTHER_FILES = 256
_FEWEST = 64
# How many connections the event loop accepts before it serves the ones it has.
ACCEPTED_AT_ONCE = 64
# How many connections the kernel keeps until they are accepted.
BACKLOG = 2048
_LOG_EVERY = 60.0
_MOST_REFUSED = 64
_REFUSED_WITHIN = 1.0
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
    b"Retry-After: 1\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    b'{"type":"urn:tenure:problem:too-many-connections","title":"Too many connections",'
    b'"status":503,"code":"too-many-connections",'
    b'"detail":"the server has as many connections as it may. Try again later"}'
)


class ConnectionTable:
    """The server's open connections. Belongs to one event loop.

    Args:
        most: The maximum number of open connections.
        most_per_address: The maximum number from a single address. Loopback and proxies are
            exempt, because all clients of a proxy share its address.
        proxies: Addresses and networks of proxies, or "*" for all addresses.
    """

    def __init__(self, *, most: int, most_per_address: int, proxies: Collection[str] = ()) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._all_are_proxies = "*" in proxies
        self._proxies = [network for text in proxies for network in _networks(text)]
        self._open: dict[BoundedProtocol, None] = {}
        # Connections without a request in progress, the longest-waiting first. They are new or
        # between requests.
        self._new: dict[BoundedProtocol, None] = {}
        self._idle: dict[BoundedProtocol, None] = {}
        self._by_address: dict[str, dict[BoundedProtocol, None]] = {}
        self._refused: dict[BoundedProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: "BoundedProtocol") -> bool:
        """Count a new connection. At a limit, close another one. Return False if all are busy."""
        address = connection.limited_address
        if address is not None:
            neighbors = self._by_address.get(address, {})
            if len(neighbors) >= self._most_per_address and not self._close_first(neighbors):
                return False
        if len(self._open) >= self._most and not (
            self._close_first(self._new) or self._close_first(self._idle)
        ):
            return False
        self._open[connection] = self._new[connection] = None
        if address is not None:
            self._by_address.setdefault(address, {})[connection] = None
        return True

    def refused(self, connection: "BoundedProtocol") -> bool:
        """Record a connection that was turned away. Return False if there are too many."""
        if len(self._refused) < _MOST_REFUSED:
            self._refused[connection] = None
        return self.is_refused(connection)

    def is_refused(self, connection: "BoundedProtocol") -> bool:
        """Return whether a connection is open that was not admitted."""
        return connection in self._refused

    def rest(self, connection: "BoundedProtocol") -> None:
        """Record that a connection waits for its client's next request."""
        if connection in self._open and connection not in self._new:
            self._idle.setdefault(connection)

    def work(self, connection: "BoundedProtocol") -> None:
        """Record that a connection has a request in progress."""
        self._new.pop(connection, None)
        self._idle.pop(connection, None)

    def discard(self, connection: "BoundedProtocol") -> None:
        """Forget a closed connection."""
        self._open.pop(connection, None)
        self._refused.pop(connection, None)
        self.work(connection)
        address = connection.limited_address
        if address is not None and (neighbors := self._by_address.get(address)) is not None:
            neighbors.pop(connection, None)
            if not neighbors:
                del self._by_address[address]

    def is_proxy(self, address: str) -> bool:
        """Return whether an address has no limit of its own."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return self._all_are_proxies
        if parsed.is_loopback or self._all_are_proxies:
            return True
        return any(parsed in network for network in self._proxies)

    def _close_first(self, connections: "dict[BoundedProtocol, None]") -> bool:
        """Close the first connection without an active request. Return False if all are busy."""
        waiting = (one for one in connections if one in self._new or one in self._idle)
        connection = next(waiting, None)
        if connection is None:
            return False
        self.discard(connection)
        connection.transport.abort()
        return True


def _networks(text: str) -> "list[IPv4Network | IPv6Network]":
    try:
        return [ip_network(text.strip(), strict=False)]
    except ValueError:
        return []


class BoundedProtocol(H11Protocol):
    """One connection, which is closed if its client takes too long to send a request."""

    table: ConnectionTable
    limited_address: str | None = None

    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _owed: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's
        """Admit the client, or refuse it with 503."""
        super().connection_made(transport)
        if self.client is not None and not self.table.is_proxy(self.client[0]):
            self.limited_address = self.client[0]
        if self.table.admit(self):
            self._review()
        else:
            self._refuse(transport)

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Respond with 503.

        If we closed the connection before the request arrived, the client would see a network error
        instead. So a limited number of clients get time to send their request.
        """
        transport.write(_FULL)
        if self.table.refused(self):
            transport.write_eof()
            self.loop.call_later(_REFUSED_WITHIN, transport.abort)
        else:
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Handle the client's bytes."""
        if self.table.is_refused(self):
            return
        super().data_received(data)
        self._review()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._review()

    def pause_writing(self) -> None:
        """Wait for the client to read.

        Without a time limit, a client that never reads would keep its request in progress forever.
        Its connection could then never be closed to make room for another.
        """
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue with the response."""
        self._stop_waiting()
        super().resume_writing()

    def _stop_waiting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        self._expect(None)
        self._stop_waiting()
        self.table.discard(self)
        super().connection_lost(exc)

    def _review(self) -> None:
        """Start or stop the timer, depending on what the client is expected to send next."""
        if self.transport.is_closing():
            self._expect("to read the rest", READ_WITHIN)
        elif self.conn.their_state is h11.IDLE:
            self.table.rest(self)
            self._expect("headers")
        elif self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE:
            # The response is complete, but uvicorn reads the rest of the request body without a
            # time limit.
            self._expect("rest of the body")
        else:
            self.table.work(self)
            self._expect(None)

    def _expect(self, owed: str | None, within: float | None = None) -> None:
        """Set what the client must send next. Sending part of it doesn't extend the deadline."""
        if owed == self._owed:
            return
        self._owed = owed
        if self._timer is not None:
            self._timer.cancel()
        within = HEADERS_WITHIN if within is None else within
        self._timer = None if owed is None else self.loop.call_later(within, self.transport.abort)


def protocol(table: ConnectionTable) -> type[BoundedProtocol]:
    """Return the protocol class for connections in this table, for uvicorn to instantiate."""
    return type("Protocol", (BoundedProtocol,), {"table": table})


def raise_open_files() -> int:
    """Raise the limit on open files as far as this process is allowed to, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**30


def fit(most: int, files: int) -> int:
    """Return how many connections the limit on open files allows, up to `most`."""
    fitting = min(most, max(files - _OTHER_FILES, _FEWEST))
    if fitting < most:
        log.warning(
            "server: %d connections at most, not %d, because the limit of open files is %d: "
            "raise it (systemd: LimitNOFILE=), or lower max_connections",
            fitting,
            most,
            files,
        )
    return fitting


class AcceptErrors:
    """Handle the event loop's errors. An error that recurs with every connection is logged once a
    minute.
    """

    def __init__(self) -> None:
        self._next_at = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error."""
        if not str(context.get("message", "")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif monotonic() >= self._next_at:
            self._next_at = monotonic() + _LOG_EVERY
            log.error(
                "server: cannot accept a connection: %s. Raise the limit of open files, or lower "
                "max_connections",
                context.get("exception"),
            )
