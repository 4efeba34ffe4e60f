"""A network namespace with one link to the host, and a fault on that link, by nftables.

What runs in the namespace reaches the host at `host` and nothing else.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_WITHIN = 10.0
_numbers = itertools.count(1)
_TABLE = "inet tenure"
# What each fault does to packets from the host (`in`) and to it (`out`).
FAULTS: Mapping[str, Mapping[str, str]] = {
    "half-open, no answers": {"in": "drop"},
    "half-open, no requests": {"out": "drop"},
    "partition": {"in": "drop", "out": "drop"},
    "resets": {
        "in": "tcp flags & (syn | rst) == 0 numgen random mod 100 < 1 reject with tcp reset",
        "out": "tcp flags & (syn | rst) == 0 numgen random mod 100 < 1 reject with tcp reset",
    },
    "10 % loss": {
        "in": "numgen random mod 100 < 10 drop",
        "out": "numgen random mod 100 < 10 drop",
    },
}


class NamespaceError(Exception):
    """A command about the network failed; the message is its own."""


def available() -> bool:
    """Whether namespaces can be made here."""
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "nft", "nsenter")))


class Namespace:
    """One namespace, from `ip netns add` to its removal."""

    def __init__(self) -> None:
        number = next(_numbers)
        self.name = f"tenure-{os.getpid()}-{number}"
        # Names of links have at most 15 characters.
        self._link = f"tn{os.getpid()}-{number}"
        self.host = self.inside = ""
        self.fault: str | None = None

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _make(self) -> None:
        self.host, self.inside = _addresses()
        peer = "up0"
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", self._link, "type", "veth", "peer", peer, "netns", self.name)
        _run("ip", "address", "add", f"{self.host}/30", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")
        _run("ip", "-n", self.name, "address", "add", f"{self.inside}/30", "dev", peer)
        _run("ip", "-n", self.name, "link", "set", peer, "up")
        _run("ip", "-n", self.name, "link", "set", "lo", "up")

    @property
    def command(self) -> tuple[str, ...]:
        """What to write before a command, to run it here."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def break_link(self, fault: str) -> None:
        """Put a fault on the link, in the place of any other; `FAULTS` has its rules."""
        rules = FAULTS[fault]
        lines = [f"table {_TABLE} {{"]
        for way, hook, match in (("in", "input", "saddr"), ("out", "output", "daddr")):
            if way in rules:
                lines.append(f"chain {hook} {{ type filter hook {hook} priority 0;")
                lines.append(f"ip {match} {self.host} {rules[way]}")
                lines.append("}")
        lines.append("}")
        self._rules("flush ruleset\n" + "\n".join(lines))
        self.fault = fault

    def heal(self) -> None:
        """Take the fault from the link."""
        self._rules("flush ruleset")
        self.fault = None

    def _rules(self, text: str) -> None:
        _run(*self.command, "nft", "-f", "-", output=text)

    def remove(self) -> None:
        """Remove it; processes in it continue without a link."""
        for words in (("link", "delete", self._link), ("netns", "delete", self.name)):
            with contextlib.suppress(NamespaceError):
                _run("ip", *words)


def _run(*words: str, output: str | None = None) -> str:
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, input=output, timeout=_WITHIN
    )
    if done.returncode != 0:
        raise NamespaceError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _addresses() -> tuple[str, str]:
    """Two addresses of a network that has no route here yet."""
    routes = json.loads(_run("ip", "-j", "-4", "route", "show"))
    taken = [ipaddress.ip_network(r["dst"]) for r in routes if r["dst"] != "default"]
    for number in range(64):
        # Where two programs choose at once, they choose apart.
        start = (os.getpid() * 64 + number) % 2**22
        chosen = ipaddress.ip_network((int(ipaddress.IPv4Address("10.0.0.0")) + 4 * start, 30))
        if not any(chosen.overlaps(network) for network in taken):
            host, inside = chosen.hosts()
            return str(host), str(inside)
    raise NamespaceError("every network that was tried is taken")
