"""Processes of `tenure dev`: one that loads the app, one that serves it.

What `tenure dev` does before its worker starts: load the app once, in a process of its own,
and bring its database to this release. The app decides which database and schema that is.

The server beside the worker of `tenure dev`: the API and the dashboard, on loopback alone.

It is a process of its own, which ends with this one, and is given its socket: so the address is
known, and free, before it starts.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NamedTuple, Self

from tenure import _settings
from tenure.cli.errors import CommandError, Exit, failure, hidden
from tenure.cli.output import print_note
from tenure.errors import ConfigError, TenureError

_PREPARE = "from tenure.cli.dev_children import prepare_main; prepare_main()"


class AppLoadError(Exception):
    """The user's code cannot be loaded as it is now."""


class PreparedApp(NamedTuple):
    """What the worker will have."""

    database: str
    schema: str
    migrated: str
    queues: Sequence[str]


def prepare(target: str, start_database: Callable[[], None]) -> PreparedApp:
    """Load the app and migrate its database; it is started first if none is configured."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-c", _PREPARE, target, str(os.getpid()), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        with ours, ours.makefile() as channel:
            for line in channel:
                told = json.loads(line)
                if "prepared" in told:
                    return PreparedApp(**told["prepared"])
                if "broken" in told:
                    raise AppLoadError(told["broken"])
                if "failed" in told:
                    what, why, todo, code = told["failed"]
                    raise CommandError(what, why, todo, Exit(code))
                start_database()
                ours.sendall(b"\n")
        raise AppLoadError(
            f"its process ended while it was loaded, with exit code {process.wait()}"
        )
    finally:
        process.kill()
        process.wait()


def prepare_main() -> None:
    """Be the process that loads the app."""
    from tenure.worker.loader import describe_load_error
    from tenure.worker.processes import die_with_parent

    target, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(fd)) as channel:
        try:
            told: dict[str, Any] = {"prepared": _prepared(target, channel)._asdict()}
        except CommandError as failed:
            told = {"failed": [failed.what, failed.why, failed.todo, failed.code]}
        except Exception as error:  # noqa: BLE001 - whatever the user's module does, it is told
            told = {"broken": describe_load_error(error)}
        channel.sendall(json.dumps(told).encode() + b"\n")


def _prepared(target: str, channel: socket.socket) -> PreparedApp:
    from tenure.worker.loader import load

    url = None
    try:
        app = load(target)
        try:
            engine = app.engine
        except ConfigError:
            channel.sendall(b"{}\n")
            channel.recv(1)
            engine = app.engine
        url = engine.url
        applied = app.admin.schema.migrate()
        app.close()
    except ConfigError as error:
        raise failure(error, url=url) from error
    except TenureError as error:
        if url is None:
            raise
        raise failure(error, url=url) from error
    return PreparedApp(
        database=hidden(url, url),
        schema=engine.schema,
        migrated=f"migrated: {', '.join(applied)}" if applied else "up to date",
        queues=app.tasks.queues,
    )


_SHOW = "from tenure.cli.dev_children import show_main; show_main()"
_HOST = "127.0.0.1"
_LASTS = 24 * 3600
_NEEDS = ("fastapi", "jinja2", "uvicorn")
_READY_WITHIN = 30.0
_ENDS_WITHIN = 5.0


class DevDashboard:
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
            print_note(f'dashboard: needs {", ".join(missing)}: pip install "tenure[server]"')
            return
        ours, theirs = socket.socketpair()
        with _listening() as on, theirs:
            port = on.getsockname()[1]
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [
                    *(sys.executable, "-c", _SHOW, target, str(os.getpid())),
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
            print_note(f"dashboard: http://{_HOST}:{port}/sign-in#{secret}")
        else:
            print_note("dashboard: it did not start; the lines above say why")


def _listening() -> socket.socket:
    """On the port that is set, or on any if somebody has that: nobody waits for a dashboard."""
    from tenure.errors import ConfigError
    from tenure.worker.observability import open_socket

    try:
        return open_socket(_HOST, _settings.resolve("port"), said_by="port")
    except ConfigError:
        return open_socket(_HOST, 0, said_by="port")


def show_main() -> None:
    """Be the process that serves."""
    from tenure.admin import By
    from tenure.server import Badge
    from tenure.server.serve import serve
    from tenure.types import Scope
    from tenure.worker.loader import load
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
