"""The server as a process: who may reach it, the first access token, and its end."""

import ipaddress
from typing import Any

import uvicorn

from tenure.admin import By, Scope
from tenure.app import Tenure
from tenure.errors import ConfigError
from tenure.server import create

_FIRST_LASTS = 24 * 3600
_GRACE = 10


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


def serve(app: Tenure, *, host: str, port: int, name: str, **options: Any) -> None:
    """Serve until told to stop; requests that are under way are brought to an end."""
    uvicorn.run(
        create(app, name=name),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=_GRACE,
        **options,
    )
