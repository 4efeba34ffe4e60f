"""The server as a process: who may reach it, the first access token, and its end."""

import ipaddress
import socket

import uvicorn

from tenure.admin import By, Scope
from tenure.app import Tenure
from tenure.errors import ConfigError
from tenure.server import create

_FIRST_LASTS = 24 * 3600
_GRACE = 10
_BACKLOG = 2048


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


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; ConfigError if that cannot be."""
    try:
        return socket.create_server((host, port), family=_family(host), backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"nothing can listen on {host} port {port}: {error.strerror}; choose another with "
            "--host or --port, or end what listens there"
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def serve(app: Tenure, *, on: socket.socket, name: str) -> None:
    """Serve until told to stop; requests that are under way are brought to an end."""
    config = uvicorn.Config(
        create(app, name=name),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    uvicorn.Server(config).run(sockets=[on])
