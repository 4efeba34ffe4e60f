"""A server of ours with clients, each a process whose time can be told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.speed.meters import family_seconds
from proof.via_http.server import Server as Serving
from support.processes import die_with_parent
from tenure import Tenure
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.server import Server

CLIENTS = 200


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time so far; subtract an earlier one."""

    database: float
    server: float
    clients: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.database - other.database,
            self.server - other.server,
            self.clients - other.clients,
        )


@dataclass(frozen=True)
class Serviced:
    """A database with a server and clients that wait."""

    database: Server
    serving: int
    clients: int

    def cost(self) -> Cost:
        """What each has used."""
        return Cost(
            family_seconds(self.database.cluster.pid),
            family_seconds(self.serving),
            family_seconds(self.clients),
        )


@contextmanager
def serviced(server: Server, url: str, *, clients: int, count: int) -> Iterator[Serviced]:
    """Serve this database to this many clients while the block lasts."""
    app = Tenure(url)
    secret = app.admin.tokens.create("bench", By("bench"), scopes=["work"]).secret
    app.close()
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        serving = Serving(Path(directory) / "log", scaled=False)
        serving.start({"TENURE_DATABASE_URL": url})
        try:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "bench.serving.clients",
                    serving.url,
                    str(clients),
                    str(count),
                ],
                env=os.environ | {"BENCH_TOKEN": secret},
                preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - it takes no lock
            )
            try:
                yield Serviced(server, serving.pid, process.pid)
            finally:
                process.terminate()
                process.wait(30)
        finally:
            serving.end()
