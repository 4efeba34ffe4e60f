"""URLs that must reach nothing, and the few that must."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv6Address

# Networks that are not public, by the registries of IANA.
REFUSED_NETWORKS = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
    *("192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
    *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64"),
    *("2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "2002::/16"),
    *("3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    "2620:4f:8000::/48",
]
TARGETS = ["127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.1.1", "100.100.100.200"]
PUBLIC = ["http://93.184.216.34/", "http://v4-93-184-216-34.test/", "http://[2606:4700::1111]/"]


def named(address: IPv4Address | IPv6Address) -> str:
    """A name that the resolver of this suite answers with this address."""
    if isinstance(address, IPv4Address):
        return f"v4-{str(address).replace('.', '-')}.test"
    return f"v6-{int(address):032x}.test"


def _spellings(text: str) -> list[str]:
    """One IPv4 address in the forms that some program reads as that address."""
    number = int(IPv4Address(text))
    a, b, c, d = (int(part) for part in text.split("."))
    full_width = str.maketrans("0123456789.", "０１２３４５６７８９。")
    return [
        text,
        f"{text}.",
        str(number),
        hex(number),
        hex(number).upper().replace("X", "x"),
        f"0{number:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0x{a:x}.{b}.0{c:o}.{d}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        f"{a}.{b}.{c}.{d + 256}",
        text.translate(full_width),
        text.replace(".", "。"),
        text.replace(".", "%2e"),
        f"%3{text[0]}{text[1:]}",
        f"[::ffff:{text}]",
        f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[0:0:0:0:0:ffff:{text}]",
        f"[::{text}]",
        f"[::ffff:0:{text}]",
        f"[64:ff9b::{text}]",
        f"[64:ff9b:1::{text}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]",
        f"[2001:0:1:1:1:1:{~number >> 16 & 0xFFFF:x}:{~number & 0xFFFF:x}]",
        f"[2a00::5efe:{text}]",
        f"example.com@{text}",
        f"user:password@{text}",
        f"{text}\\@example.com",
        f"{text}\\.example.com",
        f"{text}\t",
        f"{text}%00.example.com",
        f"{text} example.com",
        f"[{text}]",
        named(IPv4Address(text)),
        f"both-{text.replace('.', '-')}.test",
    ]


def _edges() -> list[str]:
    urls = []
    for network in map(ip_network, REFUSED_NETWORKS):
        for address in {network[0], network[-1], network[2 % network.num_addresses]}:
            literal = f"[{address}]" if address.version == 6 else str(address)
            urls += [f"http://{literal}/", f"https://{named(address)}/"]
    return urls


CORPUS = [
    *(f"http://{host}/" for text in TARGETS for host in _spellings(text)),
    *_edges(),
    *(
        f"http://{name}/latest/meta-data/"
        for name in (
            *("metadata.google.internal", "METADATA.google.internal", "metadata.google.internal."),
            *("metadata", "metadata.goog", "instance-data", "instance-data.ec2.internal"),
        )
    ),
    *(
        f"{scheme}://127.0.0.1/"
        for scheme in ("file", "ftp", "gopher", "dict", "ldap", "jar", "data", "ws", "unix", "")
    ),
    *(
        f"http://{host}:{port}/"
        for host, port in product(
            ("93.184.216.34", "v4-93-184-216-34.test"),
            (1, 22, 25, 53, 2375, 5432, 6379, 8080, 9200, 10250, 11211, 65535),
        )
    ),
    *("http://localhost/", "http://LOCALHOST./", "http://127.0.0.1:80/", "http://localhost:443/"),
    *("http://[fe80::1%25lo]/", "http://[fe80::1%lo]/", "http://[::1]:80/", "http://[::]/"),
    *("//127.0.0.1/", "127.0.0.1", "http:127.0.0.1/", "http:/127.0.0.1/", "http:///127.0.0.1/"),
    *("http://93.184.216.34#@127.0.0.1/", "http://93.184.216.34:80@127.0.0.1/", "http://:80/"),
    *("http://93.184.216.34:80\r\nHost: 127.0.0.1/", "http://93.184.216.34:99999/", "http://@/"),
    *("http://93.184.216.34:0/", "http://93.184.216.34:-1/", "http://93.184.216.34:8o/", "http://"),
]
