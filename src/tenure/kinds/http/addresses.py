"""Which addresses a worker may connect to.

`ipaddress` alone isn't enough: on Python 3.11, `is_global` is True for NAT64, 6to4 and multicast
addresses. The networks below come from the IANA registries of special-purpose addresses.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from tenure._model.outcome import GiveUp
from tenure.errors import ConfigError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
WEB_PORTS = frozenset({80, 443})
_IPV4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), kind)
    for kind, networks in {
        "a metadata": ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192"),
        "a loopback": ("127.0.0.0/8",),
        "a private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
        "a shared (CGNAT)": ("100.64.0.0/10",),
        "a link-local": ("169.254.0.0/16",),
        "a multicast": ("224.0.0.0/4",),
        "an unspecified": ("0.0.0.0/8",),
        "a reserved": (
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
            *("192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "240.0.0.0/4"),
        ),
    }.items()
    for network in networks
)
_IPV6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), kind)
    for kind, networks in {
        "a metadata": ("fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe"),
        "a loopback": ("::1",),
        "an unspecified": ("::",),
        "a unique local": ("fc00::/7",),
        "a link-local": ("fe80::/10",),
        "a multicast": ("ff00::/8",),
        "a reserved": ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"),
    }.items()
    for network in networks
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})
# A host in the allowlist may have these addresses. Any other special address needs its network
# there, because a name in DNS can point anywhere.
_INTERNAL = frozenset({"a loopback", "a private", "a shared (CGNAT)", "a unique local"})
_METADATA_NAMES = frozenset(
    {
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.packet.net",
        "metadata.platformequinix.com",
        "metadata.tencentyun.com",
    }
)
_PORT = r"(?::(?P<port>\*|[0-9]{1,5}))?"
_HOST_ENTRY = re.compile(rf"(?P<host>(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?){_PORT}")
_IPV4_ENTRY = re.compile(rf"(?P<network>[0-9.]+(?:/[0-9]{{1,2}})?){_PORT}")
_IPV6_ENTRY = re.compile(
    rf"\[(?P<network>[0-9a-f:.]+(?:/[0-9]{{1,3}})?)\]{_PORT}|(?P<bare>[0-9a-f:.]+(?:/[0-9]{{1,3}})?)"
)


class AddressRefused(GiveUp):
    """The worker's rules don't allow this host, address or port."""


def special_kind(address: Address) -> str | None:
    """Return what makes an address not public, such as `a private`, or None if it is public."""
    if isinstance(address, IPv4Address):
        return next((kind for network, kind in _IPV4 if address in network), None)
    found = next((kind for network, kind in _IPV6 if address in network), None)
    if found is None and (address not in _GLOBAL_UNICAST or embedded(address) is not None):
        return "a translated or reserved"
    return found


def embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address carries for a translator or a tunnel."""
    if isinstance(address, IPv4Address):
        return None
    bits = int(address)
    if address in _6TO4:
        return IPv4Address((bits >> 80) & 0xFFFFFFFF)
    if address in _TEREDO:
        return IPv4Address(~bits & 0xFFFFFFFF)
    last = IPv4Address(bits & 0xFFFFFFFF)
    wrapped = (_MAPPED, _TRANSLATED, _NAT64, _LOCAL_NAT64)
    if any(address in network for network in wrapped) or (bits >> 32) & 0xFFFFFFFF in _ISATAP:
        return last
    return last if address in _COMPATIBLE and bits > 1 else None


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One line of an allowlist: a host, or a network, with a port."""

    host: str | None = None
    network: Network | None = None
    # None means the ports of the web, 0 means every port.
    port: int | None = None

    def has_port(self, port: int) -> bool:
        """Return whether the entry includes this port."""
        return port in WEB_PORTS if self.port is None else self.port in {0, port}

    def has_host(self, host: str) -> bool:
        """Return whether the entry names this host, or one of its parents with `*.`."""
        if self.host is None:
            return False
        return host == self.host or (self.host.startswith("*.") and host.endswith(self.host[1:]))

    def has_address(self, address: Address) -> bool:
        """Return whether the entry's network contains this address."""
        return self.network is not None and address in self.network


def read_entry(text: object, what: str) -> AllowedHost:
    """Return an entry such as `api.internal`, `10.0.0.0/8`, `localhost:8080`, `[fd00::/8]:*`.

    Raises:
        ConfigError: The text has none of these forms.
    """
    entry = _entry(text.lower().strip()) if isinstance(text, str) else None
    if entry is None:
        raise ConfigError(
            f"{what} must be a list of hosts and networks, got {text!r}; write one as "
            '"api.internal", "*.svc.local:8080", "10.0.0.0/8:*" or "[fd00::/8]:443"'
        )
    return entry


def _entry(text: str) -> AllowedHost | None:
    for pattern in (_IPV4_ENTRY, _IPV6_ENTRY, _HOST_ENTRY):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        parts = match.groupdict()
        port = None if parts["port"] is None else int(parts["port"].replace("*", "0"))
        if port is not None and (port > 65535 or (port == 0 and parts["port"] != "*")):
            return None
        if "host" in parts:
            is_number = parts["host"].rpartition(".")[2].isdigit()
            return None if is_number else AllowedHost(host=parts["host"], port=port)
        # A host such as `cafe:8080` has only signs of an IPv6 address, but isn't one.
        with contextlib.suppress(ValueError):
            return AllowedHost(
                network=ip_network(parts["network"] or parts.get("bare") or ""), port=port
            )
    return None


@dataclass(frozen=True, slots=True)
class AddressRules:
    """A worker's rules: public addresses on web ports, and what its allowlist adds."""

    allow: Sequence[AllowedHost] = ()
    public: bool = True
    # The table of the configuration, which the messages name.
    table: str = "[kinds.http]"

    def check_host(self, host: str, port: int) -> None:
        """Refuse what needs no lookup: a metadata service, a port, a host outside the allowlist.

        Raises:
            AddressRefused: No address that the host may have would be allowed.
        """
        if host in _METADATA_NAMES and not any(entry.has_host(host) for entry in self.allow):
            raise AddressRefused(
                f"host {host!r} is a cloud metadata service; a worker calls it only if {self.table}"
                " allow names it"
            )
        entries = [entry for entry in self.allow if entry.has_port(port)]
        if any(entry.network is not None or entry.has_host(host) for entry in entries):
            return
        if port not in WEB_PORTS:
            raise _port_refused(host, port, self.table)
        if not self.public:
            raise _not_listed(host, self.table)

    def check(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        """Check every address of a host.

        Raises:
            AddressRefused: The rules don't allow one of them, or the port. The message doesn't say
                which address it is, because the author of a job must not learn a private network.
        """
        self.check_host(host, port)
        for address in addresses:
            self._check_address(host, port, address)

    def _check_address(self, host: str, port: int, address: Address) -> None:
        # Only entries for this port count, so `10.0.0.5:8080` opens nothing else of 10.0.0.5.
        entries = [entry for entry in self.allow if entry.has_port(port)]
        is_named = any(entry.has_host(host) for entry in entries)
        is_listed = any(entry.has_address(address) for entry in entries)
        if port not in WEB_PORTS and not (is_named or is_listed):
            raise _port_refused(host, port, self.table)
        inner = embedded(address)
        if inner is not None:
            # A translator would forward to the inner address, so both must be allowed.
            if not is_listed:
                raise _refused(host, "a translated or reserved", self.table)
            self._check_address(host, port, inner)
            return
        kind = special_kind(address)
        if is_listed or (is_named and (kind is None or kind in _INTERNAL)):
            return
        if kind is not None:
            raise _refused(host, kind, self.table)
        if not self.public:
            raise _not_listed(host, self.table)


def _port_refused(host: str, port: int, table: str) -> AddressRefused:
    return AddressRefused(
        f"port must be 80 or 443, got {port} of host {host!r}; add "
        f'"{_bracketed(host)}:{port}" to allow in {table} of the worker'
    )


def _not_listed(host: str, table: str) -> AddressRefused:
    return AddressRefused(
        f"host {host!r} is not in allow of {table}, and the worker calls only hosts that are; "
        "add it there"
    )


def _refused(host: str, kind: str, table: str) -> AddressRefused:
    return AddressRefused(
        f"host {host!r} has {kind} address; a worker calls it only if allow in {table} names "
        "the host or the network"
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parsed(text: str) -> Address:
    """Return an address from a resolver, without the scope of a link-local one."""
    return ip_address(text.partition("%")[0])
