"""The server's public address: allowed hosts, trusted proxies, HSTS.

A request's host, scheme and client address come from the network, so the server trusts them only as
far as its options allow. All other code reads the values that this middleware stores in the
request.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenure.admin import role_scopes
from tenure.errors import ConfigError, InvalidValue
from tenure.server.problems import ProblemError
from tenure.types import EVERY_QUEUE, Grant

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tenure.server.access_log import AccessLog

# The key in a request's scope for the name of a user who was signed in by a trusted proxy.
PROXY_USER = "tenure.proxy_user"
_HSTS = (b"strict-transport-security", b"max-age=31536000")
_PORTS = {"http": 80, "https": 443}
_EVERYONE = "*"
_MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How browsers and proxies reach the server.

    Attributes:
        public_url: The address that browsers use, such as `https://jobs.example.com`. It decides
            whether cookies are `Secure`, which origin forms may come from, and which host is
            allowed (default: taken from each request).
        allowed_hosts: Additional host names to respond to. `*.example.com` allows every subdomain
            (default: all hosts if `public_url` is not set).
        trusted_proxies: Addresses and networks whose `X-Forwarded-For`, `X-Forwarded-Proto` and
            user headers are trusted (default: none).
        proxy_user_header: A header in which a trusted proxy names the signed-in user
            (default: off).
        proxy_roles: The role of each of these users, by name. `*` applies to all others (default:
            none).
        session_idle: How long an unused dashboard session lasts (default: 1 h).
        session_lifetime: How long a dashboard session can last in total (default: 12 h).
    """

    public_url: str | None = None
    allowed_hosts: Sequence[str] | None = None
    trusted_proxies: Sequence[str] = ()
    proxy_user_header: str | None = None
    proxy_roles: Mapping[str, str] = field(default_factory=dict)
    session_idle: timedelta = timedelta(hours=1)
    session_lifetime: timedelta = timedelta(hours=12)

    def __post_init__(self) -> None:
        if self.public_url is not None:
            parts = urlsplit(self.public_url)
            if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
                raise ConfigError(
                    "public_url must be http:// or https:// and a host without a path, got "
                    f"{self.public_url!r}; write it as https://jobs.example.com"
                )
        networks(self.trusted_proxies)
        for role in self.proxy_roles.values():
            try:
                role_scopes(role)
            except InvalidValue as error:
                raise ConfigError(f"proxy_roles: {error}") from error
        if self.proxy_user_header is not None and not self.trusted_proxies:
            raise ConfigError(
                "proxy_user_header must come with trusted_proxies, got none; without it, anyone "
                "could send the header. Name the proxy's address"
            )

    @property
    def origin(self) -> str | None:
        """The origin of the public URL, as a browser sends it."""
        if self.public_url is None:
            return None
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    def site(self, scheme: str, port: int | None) -> tuple[bool, int]:
        """Return whether browsers use https, and which port, given what the request says."""
        if self.public_url is not None:
            parts = urlsplit(self.public_url)
            scheme, port = parts.scheme, parts.port
        return scheme == "https", port or _PORTS.get(scheme, 80)

    def grant(self, user: str) -> Grant | None:
        """Return what a user from a proxy may do, or None if the user has no role."""
        role = self.proxy_roles.get(user) or self.proxy_roles.get(_EVERYONE)
        return None if role is None else Grant(role_scopes(role), (EVERY_QUEUE,))

    def allows_host(self, host: str) -> bool:
        """Return whether to respond to this host name.

        Another site can make a host name of its own resolve to this server, but not an IP address
        or `localhost`.
        """
        if self.public_url is None and self.allowed_hosts is None:
            return True
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        if not name or name == "localhost" or _is_address(name):
            return True
        known = [each.lower() for each in self.allowed_hosts or ()]
        if self.public_url is not None:
            known.append(urlsplit(self.public_url).hostname or "")
        return any(
            name == each or (each.startswith("*.") and name.endswith(each[1:])) for each in known
        )


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(addresses: Sequence[str]) -> list[Network]:
    """Parse addresses and networks, or raise ConfigError."""
    try:
        return [ipaddress.ip_network(each, strict=False) for each in addresses]
    except ValueError as error:
        raise ConfigError(
            f"trusted_proxies must be addresses or networks, got {error}; write them as "
            "127.0.0.1 or 10.0.0.0/8"
        ) from error


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Front:
    """ASGI middleware in front of all routes."""

    def __init__(self, app: "ASGIApp", *, options: ServerOptions, access: "AccessLog") -> None:
        self._app = app
        self._options = options
        self._access = access
        self._trusted = networks(options.trusted_proxies)
        header = options.proxy_user_header
        self._user_header = None if header is None else header.lower().encode("latin-1")
        self._https = (options.origin or "").startswith("https:")

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or refuse its host."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        scope = self._believe(scope, headers)

        async def answer(message: "Message") -> None:
            if message["type"] == "http.response.start":
                if self._https:
                    message = {**message, "headers": [*message.get("headers", ()), _HSTS]}
                if message["status"] == 401 and _offered(scope, headers):
                    self._access.failed(address_of(scope))
            await send(message)

        try:
            allowed = self._options.allows_host(headers.get(b"host", ""))
        except ValueError:
            allowed = False
        if allowed:
            await self._app(scope, receive, answer)
            return
        problem = ProblemError(
            "wrong-host",
            "this server does not answer this host name. Set --public-url or --allowed-hosts",
        )
        await problem.answer(scope, receive, answer)

    def _believe(self, scope: "Scope", headers: Mapping[bytes, str]) -> "Scope":
        """Return the scope as a trusted proxy describes it, or unchanged without one."""
        peer = address_of(scope)
        if peer is None or not self._is_trusted(peer):
            return scope
        changed = dict(scope)
        if headers.get(b"x-forwarded-proto") in _PORTS:
            changed["scheme"] = headers[b"x-forwarded-proto"]
        # Use the last address that isn't a trusted proxy's. The client may have forged the ones
        # before it.
        for hop in reversed(_forwarded(scope)):
            if not _is_address(hop):
                break
            changed["client"] = (hop, 0)
            if not self._is_trusted(hop):
                break
        if self._user_header is not None:
            users = [value for name, value in scope["headers"] if name == self._user_header]
            # Two headers would leave open which one the proxy has written.
            if len(users) == 1 and (name := users[0].decode("latin-1").strip()[:_MOST_NAME]):
                changed[PROXY_USER] = name
        return changed

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._trusted)


def _forwarded(scope: "Scope") -> list[str]:
    lines = [
        value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"
    ]
    return [hop.strip() for hop in ",".join(lines).split(",") if hop.strip()]


def _offered(scope: "Scope", headers: Mapping[bytes, str]) -> bool:
    """Whether the request tried to authenticate. A first visit without a session did not."""
    return b"authorization" in headers or scope["method"] == "POST"


def address_of(scope: "Scope") -> str | None:
    """Return the client's address, if the request came over a network."""
    client = scope.get("client")
    return None if not client else str(client[0])
