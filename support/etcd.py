"""A private etcd of one member, in which Patroni keeps who leads."""

from __future__ import annotations

from support.cluster import free_port, memory
from support.daemons import Daemon


class Etcd(Daemon):
    """A cluster of one: enough for one machine."""

    program = "etcd"
    package = "etcd-server"

    def __init__(self) -> None:
        # It waits for the disk at every write, and Patroni waits no longer than a second for it.
        super().__init__(within=memory())
        self._peers = free_port()

    def arguments(self) -> list[str]:
        """On loopback, on a free port."""
        clients, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peers}"
        return [
            *("--name", "one", "--data-dir", str(self.directory / "data")),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"one={peers}", "--logger", "zap", "--log-level", "warn"),
        ]
