"""Options of `tenure server` about its public address, proxies and sessions."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import _settings
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from tenure.server import ServerOptions

PublicUrl = Annotated[
    str | None,
    typer.Option(
        "--public-url", metavar="URL", help="Serve browsers at this address.", show_default="none"
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option("--allowed-hosts", metavar="NAME", help="Answer this host name too; repeatable."),
]
TrustedProxies = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxies",
        metavar="ADDRESS",
        help="Believe this proxy's X-Forwarded headers; repeatable.",
        show_default="none",
    ),
]
ProxyUserHeader = Annotated[
    str | None,
    typer.Option(
        "--proxy-user-header",
        metavar="NAME",
        help="Sign in the user that this header names.",
        show_default="off",
    ),
]
ProxyRoles = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy-roles",
        metavar="USER=ROLE",
        help="Give such users a role; * means all; repeatable.",
    ),
]
SessionIdle = Annotated[
    float | None,
    typer.Option(
        "--session-idle",
        metavar="SECONDS",
        min=1,
        help="End dashboard sessions unused for this long.",
        show_default="3600",
    ),
]
SessionLifetime = Annotated[
    float | None,
    typer.Option(
        "--session-lifetime",
        metavar="SECONDS",
        min=1,
        help="End dashboard sessions after this long.",
        show_default="43200",
    ),
]


def resolve(*, is_loopback: bool, **given: Any) -> "ServerOptions":
    """Return the options as given, from the environment, from tenure.toml, or the defaults."""
    from tenure.server import ServerOptions

    values = {name: _settings.resolve(name, value or None) for name, value in given.items()}
    hosts = values["allowed_hosts"]
    if hosts is None and values["public_url"] is None and is_loopback:
        # A page on the internet can make its own host name lead to this address.
        hosts = []
    return ServerOptions(
        public_url=values["public_url"],
        allowed_hosts=hosts,
        trusted_proxies=values["trusted_proxies"] or (),
        proxy_user_header=values["proxy_user_header"],
        proxy_roles=dict(_pair(text) for text in values["proxy_roles"] or ()),
        session_idle=timedelta(seconds=values["session_idle"]),
        session_lifetime=timedelta(seconds=values["session_lifetime"]),
    )


def _pair(text: str) -> tuple[str, str]:
    user, equals, role = text.partition("=")
    if not (user and equals and role):
        raise ConfigError(
            f"proxy_roles must be USER=ROLE, got {text!r}; write it as ana=operator or *=viewer"
        )
    return user.strip(), role.strip()
