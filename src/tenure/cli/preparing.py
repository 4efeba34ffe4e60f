"""What `tenure dev` does before its worker starts: load the app once, in a process of its own,
and bring its database to this release. The app decides which database and schema that is."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure, failure, hidden
from tenure.errors import ConfigError, TenureError

_PROGRAM = "from tenure.cli.preparing import main; main()"


class Broken(Exception):
    """The user's code cannot be loaded as it is now."""


class Prepared(NamedTuple):
    """What the worker will have."""

    database: str
    schema: str
    migrated: str
    queues: Sequence[str]


def prepare(target: str, start_database: Callable[[], None]) -> Prepared:
    """Load the app and migrate its database; it is started first if none is configured."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-c", _PROGRAM, target, str(os.getpid()), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        with ours, ours.makefile() as channel:
            for line in channel:
                told = json.loads(line)
                if "prepared" in told:
                    return Prepared(**told["prepared"])
                if "broken" in told:
                    raise Broken(told["broken"])
                if "failed" in told:
                    what, why, todo, code = told["failed"]
                    raise Failure(what, why, todo, Exit(code))
                start_database()
                ours.sendall(b"\n")
        raise Broken(f"its process ended while it was loaded, with exit code {process.wait()}")
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Be the process that loads the app."""
    from tenure.worker.loading import broken
    from tenure.worker.processes import die_with_parent

    target, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(fd)) as channel:
        try:
            told: dict[str, Any] = {"prepared": _prepared(target, channel)._asdict()}
        except Failure as failed:
            told = {"failed": [failed.what, failed.why, failed.todo, failed.code]}
        except Exception as error:  # noqa: BLE001 - whatever the user's module does, it is told
            told = {"broken": broken(error)}
        channel.sendall(json.dumps(told).encode() + b"\n")


def _prepared(target: str, channel: socket.socket) -> Prepared:
    from tenure.worker.loading import load

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
        applied = app.admin.migrate()
        app.close()
    except ConfigError as error:
        raise failure(error, url=url) from error
    except TenureError as error:
        if url is None:
            raise
        raise failure(error, url=url) from error
    return Prepared(
        database=hidden(url, url),
        schema=engine.schema,
        migrated=f"migrated: {', '.join(applied)}" if applied else "up to date",
        queues=app.tasks.queues,
    )
