"""The server as a process: who may reach it, the first access token, and its end."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tenure.admin import By
from tenure.app import Tenure
from tenure.errors import ConfigError
from tenure.server import Badge, create
from tenure.types import Scope

_FIRST_LASTS = 24 * 3600
_GRACE = 10
_MOST_UNREAD = 64 * 1024


def first_token(app: Tenure, host: str) -> str | None:
    """The secret of an access token for everything, made now because there is none that is let in;
    None if there is. Refuses to make one where others than this machine could use it."""
    tokens = app.admin.tokens
    if tokens.list(count=1, active=True):
        return None
    if not is_loopback(host):
        raise ConfigError(
            f"there is no access token yet, and {host} can be reached from elsewhere; make one "
            "first: tenure token create --scope admin"
        )
    made = tokens.create(
        "first", By("tenure server", "server"), scopes=list(Scope), expires_in=_FIRST_LASTS
    )
    return made.secret


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name may lead anywhere, but for one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: Tenure, *, on: socket.socket, name: str, badge: Badge | None = None) -> None:
    """Serve until told to stop; requests that are under way are brought to an end."""
    api = create(app, name=name, badge=badge)
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        # The parser whose memory is bounded; the other one reads headers without end.
        http="h11",
        h11_max_incomplete_event_size=_MOST_UNREAD,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    _Server(config, api).run(sockets=[on])


class _Server(uvicorn.Server):
    """uvicorn's, which would die by the signal that it has heeded: this one ends well, and keeps
    nobody waiting for work."""

    def __init__(self, config: uvicorn.Config, api: FastAPI) -> None:
        super().__init__(config)
        self._api = api

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed the signals as long as the block lasts."""
        signs = (signal.SIGINT, signal.SIGTERM)
        before = {sign: signal.signal(sign, self.handle_exit) for sign in signs}
        try:
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """One signal brings what is under way to its end, a second one does not wait for that."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self.started:
            asyncio.get_running_loop().call_soon_threadsafe(self._dismiss)

    def _dismiss(self) -> None:
        self._api.state.remote.release_all()
        self._api.state.news.close()
