"""The server beside the worker of `tenure dev`: the API and the dashboard, on loopback alone.

It is a process of its own, which ends with this one, and is given its socket: so the address is
known, and free, before it starts.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from tenure import sources
from tenure.cli.words import say

_PROGRAM = "from tenure.cli.showing import main; main()"
_HOST = "127.0.0.1"
_LASTS = 24 * 3600
_NEEDS = ("fastapi", "jinja2", "uvicorn")
_READY_WITHIN = 30.0
_ENDS_WITHIN = 5.0


class Showing:
    """The server as long as the block lasts, from its start on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def start(self, target: str) -> None:
        """Start it for this app's database, unless it runs, and say where it is."""
        if self._process is not None and self._process.poll() is None:
            return
        if missing := [name for name in _NEEDS if find_spec(name) is None]:
            say(f'dashboard: needs {", ".join(missing)}: pip install "tenure[server]"')
            return
        ours, theirs = socket.socketpair()
        with _listening() as on, theirs:
            port = on.getsockname()[1]
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [
                    *(sys.executable, "-c", _PROGRAM, target, str(os.getpid())),
                    *(str(on.fileno()), str(theirs.fileno())),
                ],
                pass_fds=[on.fileno(), theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        with ours, ours.makefile() as channel:
            ours.settimeout(_READY_WITHIN)
            told = channel.readline()
        if told:
            secret = json.loads(told)["secret"]
            say(f"dashboard: http://{_HOST}:{port}/sign-in#{secret}")
        else:
            say("dashboard: it did not start; the lines above say why")


def _listening() -> socket.socket:
    """On the port that is set, or on any if somebody has that: nobody waits for a dashboard."""
    from tenure.errors import ConfigError
    from tenure.worker.listener import listening

    try:
        return listening(_HOST, sources.setting("port"), said_by="port")
    except ConfigError:
        return listening(_HOST, 0, said_by="port")


def main() -> None:
    """Be the process that serves."""
    from tenure.admin import By, Scope
    from tenure.server.badge import Badge
    from tenure.server.running import serve
    from tenure.worker.loading import load
    from tenure.worker.processes import die_with_parent

    target, parent, on, fd = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    app = load(target)
    made = app.admin.tokens.create(
        "dev", By("tenure dev", "cli"), scopes=list(Scope), expires_in=_LASTS
    )
    with socket.socket(fileno=int(fd)) as channel:
        channel.sendall(json.dumps({"secret": made.secret}).encode() + b"\n")
    serve(app, on=socket.socket(fileno=int(on)), name="dev", badge=Badge("dev", "green"))
