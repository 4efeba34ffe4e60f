"""Reading a Redis URL, one server's or that of its Sentinels. No I/O, and nothing of redis."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tenure.errors import ConfigError

_PLAIN = ("redis", "rediss", "unix")
_SENTINEL_PORT = 26379
_SHAPES = (
    "write it like redis://host:6379/0, rediss://host/0, unix:///path.sock "
    "or redis+sentinel://host1,host2/service/0"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where Redis is: `url` as redis-py reads it and, with Sentinels, who knows the master."""

    url: str = field(repr=False)
    db: int
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def place(url: str) -> Place:
    """Read a URL; ConfigError, without the URL in it, if it is none."""
    scheme, found, rest = url.partition("://")
    try:
        if found and scheme in _PLAIN:
            parts = urlsplit(url)
            number = dict(parse_qsl(parts.query)).get("db") or (
                "" if scheme == "unix" else parts.path.strip("/")
            )
            return Place(url, _db(number))
        if found and scheme in ("redis+sentinel", "rediss+sentinel"):
            return _sentinels(scheme.removesuffix("+sentinel"), rest)
    except ValueError:
        pass
    raise ConfigError(f"the Redis URL cannot be read; {_SHAPES}")


def _sentinels(scheme: str, rest: str) -> Place:
    """`[user:password@]host[:port][,host…]/service[/db][?options]`; options that begin with
    `sentinel_` are for the Sentinels, the rest and the credentials for Redis itself."""
    address, _, query = rest.partition("?")
    hosts, _, path = address.partition("/")
    credentials, at, members = hosts.rpartition("@")
    service, _, number = path.strip("/").partition("/")
    sentinels = tuple(_member(member) for member in members.split(","))
    if not service:
        raise ValueError("no service")
    options = parse_qsl(query)
    asked = [(k.removeprefix("sentinel_"), v) for k, v in options if k.startswith("sentinel_")]
    kept = urlencode([(k, v) for k, v in options if not k.startswith("sentinel_")])
    db = _db(number)
    # The host is only for the parser: the Sentinels say who the master is.
    url = f"{scheme}://{credentials}{at}master/{db}{'?' if kept else ''}{kept}"
    return Place(url, db, sentinels, unquote(service), tuple(asked))


def _member(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return parts.hostname, parts.port or _SENTINEL_PORT


def _db(text: str) -> int:
    return int(text or 0)
