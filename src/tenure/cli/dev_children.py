"""The two child processes of `tenure dev`.

One loads the app and migrates its database before the worker starts. The app determines the
database and the schema.

The other serves the API and the dashboard on loopback, and ends when `tenure dev` does. It inherits
an open socket, so its address is known and available before it starts.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NamedTuple, Self

from tenure import _settings
from tenure.cli.errors import CommandError, Exit, failure, hidden
from tenure.cli.output import print_note
from tenure.errors import ConfigError, TenureError

_PREPARE = "from tenure.cli.dev_children import prepare_main; prepare_main()"


class AppLoadError(Exception):
    """The user's code can't be loaded."""


class PreparedApp(NamedTuple):
    """A loaded app's database, schema and queues."""

    database: str
    is_private: bool
    schema: str
    migrated: str
    queues: Sequence[str]


def prepare(target: str, start_database: Callable[[], None]) -> PreparedApp:
    """Load the app and migrate its database. Start a database first if none is configured."""
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
                message = json.loads(line)
                if "prepared" in message:
                    return PreparedApp(**message["prepared"])
                if "broken" in message:
                    raise AppLoadError(message["broken"])
                if "failed" in message:
                    what, why, todo, code = message["failed"]
                    raise CommandError(what, why, todo, Exit(code))
                start_database()
                ours.sendall(b"\n")
        raise AppLoadError(f"its process exited while loading it, with code {process.wait()}")
    finally:
        process.kill()
        process.wait()


def prepare_main() -> None:
    """Run the process that loads the app."""
    from tenure.worker.loader import describe_load_error
    from tenure.worker.processes import die_with_parent

    target, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(fd)) as channel:
        try:
            message: dict[str, Any] = {"prepared": _prepared(target, channel)._asdict()}
        except CommandError as failed:
            message = {"failed": [failed.what, failed.why, failed.todo, failed.code]}
        except Exception as error:  # noqa: BLE001 - reports any error of the user's module
            message = {"broken": describe_load_error(error)}
        channel.sendall(json.dumps(message).encode() + b"\n")


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
        is_private=url == _settings.dev_url(),
        schema=engine.schema,
        migrated=f"migrated: {', '.join(applied)}" if applied else "up to date",
        queues=app.tasks.queues,
    )


_SHOW = "from tenure.cli.dev_children import show_main; show_main()"
_HOST = "127.0.0.1"
_LASTS = 24 * 3600
_NEEDS = ("fastapi", "jinja2", "uvicorn")
_NO_LINK = (
    "no link: a link needs an admin token, and this database is not tenure dev's own",
    "create a token: tenure token create NAME --role admin; or run tenure dev --sign-in-link",
)
_READY_WITHIN = 30.0
_ENDS_WITHIN = 5.0


class DevDashboard:
    """The server, from `start` to the end of the block."""

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

    def start(self, target: str, *, sign_in_link: bool) -> None:
        """Start the server for this app's database, unless it's running, and print its address.

        The server creates an access token for a link to sign in only in a private database, or if
        `sign_in_link` asks for it: others who use a shared database did not.
        """
        if self._process is not None and self._process.poll() is None:
            return
        if any(find_spec(name) is None for name in _NEEDS):
            print_note('dashboard: not installed: pip install "tenure[server]"')
            return
        ours, theirs = socket.socketpair()
        with _listening() as on, theirs:
            port = on.getsockname()[1]
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [
                    *(sys.executable, "-c", _SHOW, target, str(os.getpid())),
                    *(str(on.fileno()), str(theirs.fileno()), "link" if sign_in_link else ""),
                ],
                pass_fds=[on.fileno(), theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        with ours, ours.makefile() as channel:
            ours.settimeout(_READY_WITHIN)
            answer = channel.readline()
        if not answer:
            print_note("dashboard: did not start; see the lines above")
            return
        url, code = f"http://{_HOST}:{port}", json.loads(answer)["code"]
        if code is None:
            print_note(f"dashboard: {url}, sign in with an access token")
            for line in _NO_LINK:
                print_note(f"           {line}")
        else:
            print_note(f"dashboard: {url}/sign-in#{code}")
            print_note(f"           works once, for a minute; again: {again(url)}")


def again(url: str) -> str:
    """Return the command that creates a new link."""
    default = f"http://{_HOST}:{_settings.PROGRAM_SETTINGS['port'].built_in}"
    return "tenure session link dev" + ("" if url == default else f" --url {url}")


def _listening() -> socket.socket:
    """Listen on the configured port, or on a free one if it is taken."""
    from tenure.errors import ConfigError
    from tenure.worker.observability import open_socket

    try:
        return open_socket(_HOST, _settings.resolve("port"), options="port")
    except ConfigError:
        return open_socket(_HOST, 0, options="port")


def show_main() -> None:
    """Run the server process."""
    from tenure.admin import By
    from tenure.server import Badge, ServerOptions
    from tenure.server.serve import serve
    from tenure.types import Scope
    from tenure.worker.loader import load
    from tenure.worker.processes import die_with_parent

    target, parent, on, fd, link = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    app = load(target)
    by = By("tenure dev", "cli")
    token = code = None
    # The app's database as it is now: its code may have changed since `prepare`.
    is_private = app.engine.url == _settings.dev_url()
    if link and not is_private:
        # A token in a database of others is revoked even if `tenure dev` is killed.
        die_with_parent(int(parent), by=signal.SIGTERM)
    if link or is_private:
        token = app.admin.tokens.create("dev", by, scopes=list(Scope), expires_in=_LASTS).token
        code = app.admin.sessions.create_code(token.id, by).secret
    with socket.socket(fileno=int(fd)) as channel:
        channel.sendall(json.dumps({"code": code}).encode() + b"\n")
    day = timedelta(seconds=_LASTS)
    options = ServerOptions(allowed_hosts=(), session_idle=day, session_lifetime=day)
    try:
        serve(
            app,
            on=socket.socket(fileno=int(on)),
            name="dev",
            badge=Badge("dev", "green"),
            options=options,
        )
    finally:
        if token is not None:
            with suppress(TenureError):
                app.admin.tokens.revoke([token.id], by)
        app.close()
