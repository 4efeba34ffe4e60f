"""Run the server: the first access token, signals, shutdown."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tenure import _settings
from tenure.admin import By
from tenure.app import Tenure
from tenure.errors import ConfigError
from tenure.server import Badge, ServerOptions, connections, create
from tenure.types import Scope

_FIRST_LASTS = 24 * 3600
_GRACE = 10
_MOST_UNREAD = 64 * 1024


def first_token(app: Tenure, host: str, *, is_terminal: bool) -> str | None:
    """Create an installation's first access token, with all scopes, and return its secret.

    Only a person at a terminal gets one, and only if there has never been a token. If all tokens
    have been revoked, a restart must not print a new one to a log. In all other cases, return None,
    but refuse to start without a valid token if other machines can reach the address.
    """
    tokens = app.admin.tokens
    if tokens.list(count=1, active=True):
        return None
    if not is_loopback(host):
        raise ConfigError(
            f"no access token exists, and other machines can reach {host}. Create a token first: "
            "tenure token create NAME --scope admin"
        )
    if not is_terminal or tokens.list(count=1):
        return None
    made = tokens.create(
        "first", By("tenure server", "server"), scopes=list(Scope), expires_in=_FIRST_LASTS
    )
    return made.secret


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. `localhost` is the only name accepted."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    app: Tenure,
    *,
    on: socket.socket,
    name: str,
    badge: Badge | None = None,
    max_connections: int | None = None,
    max_connections_per_address: int | None = None,
    options: ServerOptions | None = None,
) -> None:
    """Serve until a signal arrives, then finish running requests."""
    options = options or ServerOptions()
    api = create(app, name=name, badge=badge, options=options)
    most: int = _settings.resolve("max_connections", max_connections)
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        # Use h11 because it limits the size of headers. httptools has no such limit.
        http="h11",
        ws="none",
        backlog=connections.ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=_MOST_UNREAD,
        server_header=False,
        # `tenure.server.front` believes only the proxies that are named.
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
    table = connections.ConnectionTable(
        most=connections.fit(most, connections.raise_open_files()),
        most_per_address=_settings.resolve(
            "max_connections_per_address", max_connections_per_address
        ),
        proxies=options.trusted_proxies,
    )
    config.http = connections.protocol(table)
    _Server(config, api).run(sockets=[on])


class _Server(uvicorn.Server):
    """A uvicorn server that exits with 0 after a signal and ends long polls immediately.

    By default, uvicorn raises the signal again after shutting down.
    """

    def __init__(self, config: uvicorn.Config, api: FastAPI) -> None:
        super().__init__(config)
        self._api = api

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, with a kernel backlog longer than one accept round of the event loop."""
        asyncio.get_running_loop().set_exception_handler(connections.AcceptErrors())
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(connections.BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the block runs."""
        signs = (signal.SIGINT, signal.SIGTERM)
        before = {sign: signal.signal(sign, self.handle_exit) for sign in signs}
        try:
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Finish running requests on the first signal, and stop immediately on the second."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self.started:
            asyncio.get_running_loop().call_soon_threadsafe(self._dismiss)

    def _dismiss(self) -> None:
        self._api.state.remote.release_all()
        self._api.state.news.close()
