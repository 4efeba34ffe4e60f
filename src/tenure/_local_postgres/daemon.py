"""The daemon: a process that runs a private server, and stops it when its last user is gone."""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tenure._local_postgres.directory import gate, locked, open_file

POLL_INTERVAL = 0.2
STOP_WITHIN = 15.0
_PR_SET_PDEATHSIG = 1
_MAIN = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tenure._local_postgres.daemon import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonOptions:
    """A daemon's options."""

    directory: str
    sockets: str
    durable: bool
    user: tuple[int, int] | None
    command: Sequence[str]


def start(options: DaemonOptions) -> None:
    """Start a daemon, and return once it holds the `kept` lock.

    The daemon isn't a child of this process, so it can keep running while other processes use the
    server.
    """
    here = str(Path(__file__).parents[2])
    # -P: no module is imported from the directory.
    command = [sys.executable, "-P", "-c", _MAIN, here, json.dumps(asdict(options))]
    popen(command, Path(options.directory)).wait()


def main() -> None:
    """Run a daemon."""
    options = DaemonOptions(**json.loads(sys.argv[2]))
    directory = Path(options.directory)
    kept = open_file(directory / "kept")
    fcntl.flock(kept, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    server = popen(
        options.command, directory, user=options.user, before_exec=_ends_with(os.getpid())
    )
    os.write(kept, str(server.pid).encode())
    with suppress(FileNotFoundError):  # the directory was removed
        while server.poll() is None:
            with suppress(BlockingIOError), gate(directory, wait=False):
                if not locked(directory / "users"):
                    _end(server)
                    # Still holding the gate, so the next user finds `kept` unlocked.
                    os.close(kept)
                    _clear(options)
                    return
            time.sleep(POLL_INTERVAL)
    _end(server)


def popen(
    command: Sequence[str],
    directory: Path,
    *,
    user: tuple[int, int] | None = None,
    before_exec: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Run a program in the directory, logging its output and ignoring Ctrl-C."""
    uid, gid = user or (None, None)
    environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    with os.fdopen(open_file(directory / "log", flags=os.O_WRONLY | os.O_APPEND), "ab") as log:
        return subprocess.Popen(  # noqa: S603 - PostgreSQL's programs, and this Python
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509 - the daemon has one thread
            user=uid,
            group=gid,
            extra_groups=None if user is None else [],
        )


def _ends_with(parent: int) -> Callable[[], None]:
    """Return a `preexec_fn` that makes the kernel stop the server when its daemon ends."""
    libc = ctypes.CDLL(None, use_errno=True)

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def _end(server: subprocess.Popen[bytes]) -> None:
    """Send SIGINT (fast), then SIGQUIT (immediate), then SIGKILL."""
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is None:
            server.send_signal(request)
            with suppress(subprocess.TimeoutExpired):
                server.wait(STOP_WITHIN)


def _clear(options: DaemonOptions) -> None:
    """Remove temporary directories. The caller holds the gate."""
    if options.sockets != options.directory:
        shutil.rmtree(options.sockets, ignore_errors=True)
    if not options.durable:
        # Rename it first: a process waiting at the gate then creates a new directory.
        directory = Path(options.directory)
        gone = directory.rename(directory.with_name(f"{directory.name}.gone-{os.getpid()}"))
        shutil.rmtree(gone, ignore_errors=True)
