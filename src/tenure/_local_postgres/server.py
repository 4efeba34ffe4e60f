"""Find PostgreSQL's programs; start, share and stop a server."""

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from tenure._local_postgres import daemon
from tenure._local_postgres.directory import (
    gate,
    give,
    locked,
    log_end,
    open_file,
    server_status,
    unprivileged,
)
from tenure.errors import ConfigError

_OLDEST = 15


def find_binaries(major: int | None = None) -> Path | None:
    """Return the directory that contains `postgres` and `initdb` (default: newest version).

    It searches PATH, the directory that pg_config reports, and the usual installation directories.
    """
    versions: dict[int, Path] = {}
    for directory in _candidates():
        if (version := _major(directory)) is not None:
            versions.setdefault(version, directory)
    wanted = max(versions, default=0) if major is None else major
    return versions.get(wanted) if wanted >= _OLDEST else None


def binaries_for(data: Path) -> Path:
    """Return the binaries for a data directory, or the newest if it doesn't exist yet."""
    version = data / "PG_VERSION"
    major = int(version.read_text()) if version.exists() else None
    if binaries := find_binaries(major):
        return binaries
    if major is not None:
        raise ConfigError(
            f"{data} needs PostgreSQL {major}, which is not installed; "
            f"install it (apt-get install postgresql-{major}), or remove {data.parent}"
        )
    raise ConfigError(
        f"PostgreSQL {_OLDEST} or newer is not installed here; "
        "install it (apt-get install postgresql), or configure a database that runs elsewhere"
    )


def _candidates() -> Iterator[Path]:
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent
    if pg_config := shutil.which("pg_config"):
        yield Path(_output(pg_config, "--bindir"))
    for pattern in ("lib/postgresql/*/bin", "pgsql-*/bin", "local/pgsql/bin"):
        yield from Path("/usr").glob(pattern)


def _major(directory: Path) -> int | None:
    if not all((directory / program).exists() for program in ("postgres", "initdb")):
        return None
    version = re.search(r"\d+", _output(str(directory / "postgres"), "--version"))
    return int(version[0]) if version else None


def _output(*command: str) -> str:
    answer = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - found here
    return answer.stdout.strip()


# Unix socket paths have a maximum length.
_LONGEST_PATH = 107 - len("/.s.PGSQL.5432")
_START_WITHIN = 60.0
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
}
# With these settings, a machine crash loses data, but killing the server doesn't.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class PrivatePostgres:
    """A PostgreSQL server in its own directory, shared by all processes that start it there.

    The server shuts down when the last process using it stops it or exits. If `durable`, the data
    is kept for the next start and written as safely as on a production server. Otherwise, the
    directory is deleted when the server stops. If this process runs as root, the server runs as the
    user `postgres` or as the default unprivileged user.
    """

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self._directory = directory.absolute()
        self._durable = durable
        self._used: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> str:
        """Start the server if it isn't running, and return its URL once it responds."""
        with gate(self._directory, make=True):
            if self._used is None:
                self._used = open_file(self._directory / "users")
                fcntl.flock(self._used, fcntl.LOCK_SH)
            try:
                # A server whose daemon holds the lock may be about to stop.
                if not locked(self._directory / "kept") or not self._ready():
                    self._launch()
                    self._until_ready()
            except BaseException:
                self._leave()
                raise
        return self.url()

    def url(self, database: str = "postgres") -> str:
        """Return the URL for a database on the running server."""
        status = server_status(self._directory)
        if self._used is None or not status:
            raise ConfigError("the private PostgreSQL is not running; call start() first")
        return f"postgresql://postgres@/{quote(database)}?host={quote(status[4], safe='')}"

    def stop(self) -> None:
        """Stop using the server. Wait until it has stopped, unless others are still using it."""
        if self._used is None:
            return
        self._leave()
        with suppress(FileNotFoundError):
            while locked(self._directory / "kept"):
                with gate(self._directory):
                    if locked(self._directory / "users"):
                        return
                time.sleep(daemon.POLL_INTERVAL / 10)

    def _leave(self) -> None:
        if self._used is not None:
            os.close(self._used)
            self._used = None

    def _launch(self) -> None:
        """Start a daemon with the server. The caller holds the gate."""
        data, user = self._directory / "data", unprivileged()
        bindir = binaries_for(data)
        if not data.exists():
            self._initialise(data, bindir, user)
        _wait_for(lambda: not _alive(self._directory), daemon.STOP_WITHIN)
        os.close(open_file(self._directory / "kept", flags=os.O_RDWR | os.O_TRUNC))
        sockets = self._sockets(user)
        settings = _SETTINGS | ({} if self._durable else _NOT_DURABLE)
        settings["unix_socket_directories"] = str(sockets)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        daemon.start(
            daemon.DaemonOptions(
                directory=str(self._directory),
                sockets=str(sockets),
                durable=self._durable,
                user=user,
                command=[str(bindir / "postgres"), "-D", str(data), *options],
            )
        )

    def _initialise(self, data: Path, bindir: Path, user: tuple[int, int] | None) -> None:
        draft = data.with_name("data.new")
        shutil.rmtree(draft, ignore_errors=True)
        give(draft, user)
        auth = ("--username=postgres", "--auth-local=trust", "--auth-host=reject")
        kind = ("--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions")
        sync = () if self._durable else ("--no-sync",)
        command = [str(bindir / "initdb"), f"--pgdata={draft}", *auth, *kind, *sync]
        if daemon.popen(command, self._directory, user=user).wait() != 0:
            account = f" as user {pwd.getpwuid(user[0]).pw_name}" if user else ""
            raise ConfigError(
                f"initdb failed{account} in {self._directory}; fix what it reports:\n"
                f"{log_end(self._directory)}"
            )
        draft.rename(data)

    def _sockets(self, user: tuple[int, int] | None) -> Path:
        """Return the socket's directory: this one, a subdirectory, or one with a shorter path."""
        own = self._directory if user is None else self._directory / "sockets"
        if len(os.fsencode(own)) <= _LONGEST_PATH:
            return give(own, user)
        return give(Path(tempfile.mkdtemp(prefix="tenure-pg-")), user)

    def _until_ready(self) -> None:
        if not self._ready():
            raise ConfigError(
                f"the private PostgreSQL in {self._directory} did not start; fix what it reports:\n"
                f"{log_end(self._directory)}"
            )

    def _ready(self) -> bool:
        """Wait until the server accepts connections (True) or has stopped (False)."""

        def ended() -> bool:
            return not locked(self._directory / "kept")

        def ready() -> bool:
            status = server_status(self._directory)
            return status[:1] == [(self._directory / "kept").read_text()] and status[7:] == [
                "ready"
            ]

        return _wait_for(lambda: ready() or ended(), _START_WITHIN) and not ended()


def _alive(directory: Path) -> bool:
    """Return whether a server whose daemon was killed is still running."""
    status = server_status(directory)
    return bool(status) and Path("/proc", status[0]).exists()


def _wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
