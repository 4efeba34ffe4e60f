"""A namespace has one link, which breaks on command and heals, and nothing of it stays behind."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import namespace
from support.namespace import Namespace

pytestmark = pytest.mark.skipif(not namespace.available(), reason="no network namespaces here")

_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.5)"


def _reaches(network: Namespace, port: int) -> bool:
    words = [*network.command, sys.executable, "-c", _CONNECT, network.host, str(port)]
    return subprocess.run(words, check=False, capture_output=True, timeout=30).returncode == 0


@pytest.mark.parametrize("fault", ["half-open, no answers", "half-open, no requests", "partition"])
def test_a_cut_link_carries_nothing_until_it_heals(fault: str) -> None:
    with Namespace() as network, socket.create_server((network.host, 0)) as server:
        port = server.getsockname()[1]
        assert _reaches(network, port)
        network.break_link(fault)
        assert not _reaches(network, port)
        network.heal()
        assert _reaches(network, port)


@pytest.mark.parametrize("fault", ["resets", "10 % loss"])
def test_noise_is_put_on_a_link_and_taken_away(fault: str) -> None:
    with Namespace() as network:
        network.break_link(fault)
        network.heal()


def test_nothing_stays_behind() -> None:
    with Namespace() as first, Namespace() as second:
        assert first.host != second.host
    for network in (first, second):
        assert not Path("/run/netns", network.name).exists()
