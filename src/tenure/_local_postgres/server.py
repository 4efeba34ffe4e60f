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
    locked,
    log_end,
    open_file,
    server_says,
    unprivileged,
)
from tenure.errors import ConfigError

_OLDEST = 15


def find_binaries(major: int | None = None) -> Path | None:
    """The directory with `postgres` and `initdb`: the newest version among what is on PATH, what
    pg_config names and what packages install, or the one that is asked for."""
    found: dict[int, Path] = {}
    for directory in _candidates():
        if (version := _major(directory)) is not None:
            found.setdefault(version, directory)
    wanted = max(found, default=0) if major is None else major
    return found.get(wanted) if wanted >= _OLDEST else None


def binaries_for(data: Path) -> Path:
    """The binaries that fit a data directory; the newest, if it is not made yet."""
    made_by = data / "PG_VERSION"
    major = int(made_by.read_text()) if made_by.exists() else None
    if found := find_binaries(major):
        return found
    if major is not None:
        raise ConfigError(
            f"{data} was made by PostgreSQL {major}, which is not installed any more; "
            f"install it again (apt-get install postgresql-{major}), or remove {data.parent}"
        )
    raise ConfigError(
        f"no PostgreSQL server from {_OLDEST} on is installed here; "
        "install one (apt-get install postgresql), or name a database that runs elsewhere"
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


# A Unix socket's address is short.
_LONGEST_PATH = 107 - len("/.s.PGSQL.5432")
_START_WITHIN = 60.0
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "timezone": "UTC",
}
# A killed server loses nothing by these, a machine without power does.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class PrivatePostgres:
    """A server in a directory of its own, shared by all who start it there.

    It ends when the last of them has stopped it or is gone, however that came. `durable` keeps
    the data for the next start, and writes them as a production server does; otherwise the
    directory goes with the server. As root it runs as the user postgres, or nobody.
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
        """Start the server unless it runs, and return its URL once it answers."""
        with gate(self._directory, make=True):
            if self._used is None:
                self._used = open_file(self._directory / "users")
                fcntl.flock(self._used, fcntl.LOCK_SH)
            try:
                # One that is kept may be ending by itself just now.
                if not locked(self._directory / "kept") or not self._ready():
                    self._launch()
                    self._until_ready()
            except BaseException:
                self._leave()
                raise
        return self.url()

    def url(self, database: str = "postgres") -> str:
        """The URL of a database on the running server."""
        says = server_says(self._directory)
        if self._used is None or not says:
            raise ConfigError("the private PostgreSQL does not run; call start() first")
        return f"postgresql://postgres@/{quote(database)}?host={quote(says[4], safe='')}"

    def stop(self) -> None:
        """Leave the server; return when it has ended, or at once if others still use it."""
        if self._used is None:
            return
        self._leave()
        with suppress(FileNotFoundError):
            while locked(self._directory / "kept"):
                with gate(self._directory):
                    if locked(self._directory / "users"):
                        return
                time.sleep(daemon.LOOK / 10)

    def _leave(self) -> None:
        if self._used is not None:
            os.close(self._used)
            self._used = None

    def _launch(self) -> None:
        """Have a minder start the server. The gate is held: nobody else starts or ends one."""
        data, user = self._directory / "data", unprivileged()
        bindir = binaries_for(data)
        if user is not None:
            os.chown(self._directory, *user)
        if not data.exists():
            self._initialise(data, bindir, user)
        _wait_for(lambda: not _alive(self._directory), daemon.STOP_WITHIN)
        (self._directory / "kept").write_text("")
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
        auth = ("--username=postgres", "--auth-local=trust", "--auth-host=reject")
        kind = ("--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions")
        sync = () if self._durable else ("--no-sync",)
        command = [str(bindir / "initdb"), f"--pgdata={draft}", *auth, *kind, *sync]
        if daemon.popen(command, self._directory, user=user).wait() != 0:
            who = f" as user {pwd.getpwuid(user[0]).pw_name}, since root may not," if user else ""
            raise ConfigError(
                f"initdb failed{who} in {self._directory}; mend what it says:\n"
                f"{log_end(self._directory)}"
            )
        draft.rename(data)

    def _sockets(self, user: tuple[int, int] | None) -> Path:
        """Where the socket is: in the directory, or in one with a shorter path."""
        if len(os.fsencode(self._directory)) <= _LONGEST_PATH:
            return self._directory
        short = Path(tempfile.mkdtemp(prefix="tenure-pg-"))
        if user is not None:
            os.chown(short, *user)
        return short

    def _until_ready(self) -> None:
        if not self._ready():
            raise ConfigError(
                f"the private PostgreSQL in {self._directory} did not start; mend what it says:\n"
                f"{log_end(self._directory)}"
            )

    def _ready(self) -> bool:
        """Answer whether it takes connections, once it does or has ended."""

        def ended() -> bool:
            return not locked(self._directory / "kept")

        def ready() -> bool:
            says = server_says(self._directory)
            return says[:1] == [(self._directory / "kept").read_text()] and says[7:] == ["ready"]

        return _wait_for(lambda: ready() or ended(), _START_WITHIN) and not ended()


def _alive(directory: Path) -> bool:
    """Whether a server whose minder was killed has not ended yet."""
    says = server_says(directory)
    return bool(says) and Path("/proc", says[0]).exists()


def _wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
