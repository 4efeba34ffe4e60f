"""The server as a process of its own: killed and started again on the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx

from proof import mutations
from proof.crash.jobs import SCALED
from support.binaries import ROOT
from support.processes import die_with_parent, wait_for
from tenure import Tenure
from tenure.config import DEFAULTS
from tenure.server.serve import serve
from tenure.worker.observability import open_socket

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SELF = "from proof.via_http.server import be; be()"
_UP_WITHIN = 60.0
_END_WITHIN = 20.0


class Server:
    """One server on a free port of loopback. End it."""

    def __init__(self, log: Path, *, scaled: bool = True, program: str = _SELF) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = log
        self._scaled = scaled
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def start(self, environment: Mapping[str, str]) -> None:
        """Start it; it answers when this returns."""
        with self._log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - itself
                [sys.executable, "-c", self._program, str(self.port), str(int(self._scaled))],
                cwd=ROOT,
                env=os.environ | {**environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        if not wait_for(self._answers, _UP_WITHIN):
            raise RuntimeError(f"the server did not come up; see {self._log}")

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End it in order, or by force."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/live", timeout=1).is_success
        except httpx.HTTPError:
            return False


def be() -> None:
    """Be that process: what `tenure server` runs, with the constants of the protocol scaled if
    that was said."""
    if os.environ.get("PROOF_BUG"):
        mutations.apply(os.environ["PROOF_BUG"])
    defaults = SCALED if sys.argv[2] == "1" else DEFAULTS
    serve(Tenure(defaults=defaults), on=open_socket("127.0.0.1", int(sys.argv[1])), name="server")
