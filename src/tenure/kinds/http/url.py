"""URLs as HTTP work accepts them: strict, so that no two programs read one differently."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote

from tenure.errors import InvalidValue

MAX_URL = 8192
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>.*)")
_AUTHORITY = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{0,5}))?"
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Everything else in a path or a query is percent-encoded.
_SAFE = "/?:@!$&'()*+,;=%-._~[]|"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Url:
    """A checked URL. The host is lowercase and has no trailing dot."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        """The value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The URL without its path and query, which may be confidential."""
        return f"{self.scheme}://{self.host_header}"


def read_url(text: object) -> Url:
    """Return the parts of a URL.

    Raises:
        InvalidValue: It is not a plain http or https URL. The message doesn't repeat the URL, which
            may contain a password.
    """
    if not isinstance(text, str) or not 0 < len(text) <= MAX_URL:
        raise InvalidValue(
            f"url must be a text of at most {MAX_URL:,} characters; write https://host/path"
        )
    if any(ord(char) <= 0x20 or ord(char) == 0x7F or char in '\\"<>^`{}' for char in text):
        raise InvalidValue(
            "url must not contain spaces, control characters, quotes or backslashes; "
            "percent-encode them, as in %20"
        )
    match = _URL.fullmatch(text)
    if match is None or match["scheme"].lower() not in _PORTS:
        raise InvalidValue("url must begin with http:// or https://; write https://host/path")
    if "@" in match["authority"]:
        raise InvalidValue(
            "url must not contain a user name or password; name a secret in a header instead: "
            '{"Authorization": {"secret": "NAME", "prefix": "Basic "}}'
        )
    if "#" in match["target"]:
        raise InvalidValue("url must not contain a fragment, which no server gets; omit the #…")
    scheme = match["scheme"].lower()
    host, port = _host_and_port(match["authority"], scheme)
    target = match["target"]
    if not target.startswith("/"):
        target = f"/{target}"
    return Url(scheme, host, port, quote(target, safe=_SAFE))


def _host_and_port(authority: str, scheme: str) -> tuple[str, int]:
    if not authority.isascii():
        raise InvalidValue(
            "url must have an ASCII host; write an international name in its xn-- form"
        )
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise InvalidValue(
            "url must have a host name or an IP address, and at most a port after it; write "
            "https://host/path or https://host:8443/path"
        )
    port = int(match["port"]) if match["port"] else _PORTS[scheme]
    if not 0 < port <= 65535:
        raise InvalidValue(f"the port in url must be from 1 to 65535, got {port}")
    if match["v6"]:
        return _ipv6(match["v6"]), port
    return _name(match["name"].lower().removesuffix(".")), port


def _ipv6(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise InvalidValue(
            "the address in url must be IPv6 in brackets, as in https://[2001:db8::1]/path"
        ) from None


def _name(host: str) -> str:
    labels = host.split(".")
    # `0x7f.1` and `2130706433` are names to some programs and 127.0.0.1 to others.
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise InvalidValue(
                "the address in url must be IPv4 in four decimal parts, as in https://192.0.2.1/"
            ) from None
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidValue(
            "the host in url must be a name of letters, digits and hyphens, as in api.example.com"
        )
    return host
