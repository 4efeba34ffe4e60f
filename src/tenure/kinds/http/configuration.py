"""The table `[kinds.http]` of a worker's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.errors import ConfigError
from tenure.kinds.http.addresses import AddressRules, AllowedHost, read_entry
from tenure.kinds.http.request import MAX_TIMEOUT
from tenure.kinds.settings import is_secret_name, settings_of

_TABLE = "[kinds.http]"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a client certificate."""

    cert: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SecretHost:
    """A host that may get a secret in a header, over HTTPS or also over HTTP."""

    entry: AllowedHost
    is_plain: bool = False

    def has(self, scheme: str, host: str, port: int) -> bool:
        """Return whether a request to this origin may contain the secret."""
        allowed = scheme == "https" or self.is_plain
        return allowed and self.entry.has_port(port) and self.entry.has_host(host)


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """How a worker makes requests."""

    rules: AddressRules = field(default_factory=AddressRules)
    connect_timeout: float = 5.0
    read_timeout: float = 15.0
    total_timeout: float = 30.0
    connections_per_host: int = 10
    ca_file: str | None = None
    result_headers: frozenset[str] = frozenset()
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    secrets: Mapping[str, tuple[SecretHost, ...]] = field(default_factory=dict)


def read_configuration() -> HttpConfig:
    """Return the configuration of this worker.

    Raises:
        ConfigError: A setting is unknown or invalid.
    """
    return parse_configuration(settings_of("http"))


def parse_configuration(table: Mapping[str, Any]) -> HttpConfig:
    """Return the configuration that the table describes.

    Raises:
        ConfigError: A setting is unknown or invalid.
    """
    known = {
        *("allow", "public", "connect_timeout", "read_timeout", "total_timeout"),
        *("connections_per_host", "ca_file", "result_headers", "certificates", "secrets"),
    }
    if unknown := sorted(table.keys() - known):
        raise ConfigError(
            f"{_TABLE} must have only {', '.join(sorted(known))}, got {unknown[0]!r}; check its "
            "spelling"
        )
    allow = tuple(read_entry(text, f"allow in {_TABLE}") for text in _list(table, "allow"))
    public = table.get("public", True)
    if not isinstance(public, bool):
        raise ConfigError(f"public in {_TABLE} must be true or false, got {public!r}")
    headers = _list(table, "result_headers")
    if not all(isinstance(name, str) for name in headers):
        raise ConfigError(f'result_headers in {_TABLE} must be names; write ["x-request-id"]')
    return HttpConfig(
        AddressRules(allow, public),
        connect_timeout=_seconds(table, "connect_timeout", 5.0),
        read_timeout=_seconds(table, "read_timeout", 15.0),
        total_timeout=_seconds(table, "total_timeout", 30.0),
        connections_per_host=_count(table, "connections_per_host", 10),
        ca_file=_path(table, "ca_file"),
        result_headers=frozenset(name.lower() for name in headers),
        certificates=_certificates(_table(table, "certificates")),
        secrets={name: _hosts(name, hosts) for name, hosts in _table(table, "secrets").items()},
    )


def _list(table: Mapping[str, Any], name: str) -> list[Any]:
    value = table.get(name, [])
    if not isinstance(value, list):
        raise ConfigError(f'{name} in {_TABLE} must be a list, got {value!r}; write ["…"]')
    return value


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict) or not all(map(is_secret_name, value)):
        raise ConfigError(
            f"{name} in {_TABLE} must be a table whose names are letters, digits and _; write "
            f"[kinds.http.{name}]"
        )
    return value


def _seconds(table: Mapping[str, Any], name: str, default: float) -> float:
    value = table.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_TIMEOUT:
        raise ConfigError(
            f"{name} in {_TABLE} must be more than 0 and at most {MAX_TIMEOUT} s, got {value!r}; "
            f"write {name} = {default:g}"
        )
    return float(value)


def _count(table: Mapping[str, Any], name: str, default: int) -> int:
    value = table.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 1000:
        raise ConfigError(
            f"{name} in {_TABLE} must be from 1 to 1,000, got {value!r}; write {name} = {default}"
        )
    return value


def _path(table: Mapping[str, Any], name: str) -> str | None:
    value = table.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} in {_TABLE} must be the path of a file, got {value!r}")
    return value


def _certificates(table: Mapping[str, Any]) -> Mapping[str, Certificate]:
    certificates = {}
    for name, value in table.items():
        paths = value if isinstance(value, dict) else {}
        cert, key = paths.get("cert"), paths.get("key")
        if paths.keys() - {"cert", "key"} or not isinstance(cert, str) or not _is_path(key):
            raise ConfigError(
                f"certificate {name!r} in {_TABLE} must have cert and key; write {name} = {{cert = "
                '"client.pem", key = "client.key"}'
            )
        certificates[name] = Certificate(cert, key)
    return certificates


def _is_path(value: object) -> bool:
    return value is None or isinstance(value, str)


def _hosts(name: str, hosts: object) -> tuple[SecretHost, ...]:
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise ConfigError(
            f"secret {name!r} in {_TABLE} must be a list of the hosts that may get it; write "
            f'{name} = ["api.example.com"]'
        )
    known = []
    for host in hosts:
        bare = host.removeprefix("http://")
        entry = read_entry(bare, f"secret {name!r} in {_TABLE}")
        if entry.host is None:
            raise ConfigError(
                f"secret {name!r} in {_TABLE} must name hosts, got {host!r}; a header goes to a "
                "host, not to a network"
            )
        known.append(SecretHost(entry, is_plain=bare != host))
    return tuple(known)
