"""The minder: the small process that runs a private server, and ends it when nobody uses it."""

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

LOOK = 0.2
STOP_WITHIN = 15.0
_PR_SET_PDEATHSIG = 1
_MAIN = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tenure._local_postgres.daemon import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonOptions:
    """What a minder is told at its start."""

    directory: str
    sockets: str
    durable: bool
    user: tuple[int, int] | None
    command: Sequence[str]


def start(orders: DaemonOptions) -> None:
    """Start a minder, and return when it holds `kept`. It is nobody's child, and outlives this
    process where others use the server."""
    here = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", _MAIN, here, json.dumps(asdict(orders))]
    popen(command, Path(orders.directory)).wait()


def main() -> None:
    """Be a minder."""
    orders = DaemonOptions(**json.loads(sys.argv[2]))
    directory = Path(orders.directory)
    kept = open_file(directory / "kept")
    fcntl.flock(kept, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    server = popen(orders.command, directory, user=orders.user, before_exec=_ends_with(os.getpid()))
    os.write(kept, str(server.pid).encode())
    with suppress(FileNotFoundError):  # somebody has removed the directory
        while server.poll() is None:
            with suppress(BlockingIOError), gate(directory, wait=False):
                if not locked(directory / "users"):
                    _end(server)
                    # While the gate is held: who comes next finds nobody who keeps it.
                    os.close(kept)
                    _clear(orders)
                    return
            time.sleep(LOOK)
    _end(server)


def popen(
    command: Sequence[str],
    directory: Path,
    *,
    user: tuple[int, int] | None = None,
    before_exec: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Run a program in the directory, into its log, out of reach of the terminal's Ctrl-C."""
    uid, gid = user or (None, None)
    environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    with (directory / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - binaries that were found here, and this Python
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509 - the minder has one thread
            user=uid,
            group=gid,
            extra_groups=None if user is None else [],
        )


def _ends_with(parent: int) -> Callable[[], None]:
    """A `preexec_fn` by which the kernel ends the server with its minder."""
    libc = ctypes.CDLL(None, use_errno=True)

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def _end(server: subprocess.Popen[bytes]) -> None:
    """SIGINT (fast), then SIGQUIT (immediate), then SIGKILL."""
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is None:
            server.send_signal(request)
            with suppress(subprocess.TimeoutExpired):
                server.wait(STOP_WITHIN)


def _clear(orders: DaemonOptions) -> None:
    """Remove what is not to be kept. The gate is held."""
    if orders.sockets != orders.directory:
        shutil.rmtree(orders.sockets, ignore_errors=True)
    if not orders.durable:
        # At once by its name: whoever waits at the gate then makes a new directory.
        directory = Path(orders.directory)
        gone = directory.rename(directory.with_name(f"{directory.name}.gone-{os.getpid()}"))
        shutil.rmtree(gone, ignore_errors=True)
