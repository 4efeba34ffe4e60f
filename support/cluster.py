"""A private PostgreSQL server, from initdb to removal. Knows nothing of databases' contents."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psycopg

from support import binaries, segments
from support.processes import alive, children, die_with_parent, send, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

# Commits are acknowledged as in production but not forced to disk: a killed server
# loses nothing, a machine without power would.
SETTINGS: Mapping[str, str] = {
    "autovacuum": "on",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_prepared_transactions": "0",
    "shared_buffers": "256MB",
    "synchronous_commit": "on",
    "timezone": "UTC",
}

# As a production server has it: for suites whose word is that a crash loses nothing.
DURABLE: Mapping[str, str] = {"fsync": "on", "full_page_writes": "on"}

_START_WITHIN = 60.0
_STOP_WITHIN = 15.0


_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
_ROOM = 6 * 2**30


class ClusterError(Exception):
    """The server did not do as asked; the message carries the end of its log."""


class Cluster:
    """One server with a directory and a loopback port of its own.

    It ends with the thread that started it, even by SIGKILL (only its directory then
    stays behind), so start it from a thread that lives as long as it should.
    The port is kept across `restart` and `kill`, so that URLs stay good. Its directory is made
    in `parent`, or in the usual place; `environment` is added to that of its processes.
    """

    def __init__(
        self,
        major: int = 15,
        settings: Mapping[str, str] | None = None,
        *,
        in_memory: bool = False,
        parent: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.major = major
        self._parent = memory() if in_memory else parent
        self._extra = environment or {}
        self.settings = {**SETTINGS, **(settings or {})}
        self._uid, self._gid = unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._directory: Path | None = None
        self._installed = self._bin = binaries.find(major)

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

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        if self._process is None:
            raise ClusterError("the cluster is not running; call start()")
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server runs; one that ended by itself does not."""
        return self._process is not None and self._process.poll() is None

    @property
    def port(self) -> int:
        if self._port is None:
            raise ClusterError("the cluster has no port yet; call start()")
        return self._port

    @property
    def directory(self) -> Path:
        """Holds `data`, `log` and the Unix socket; gone after `stop`."""
        if self._directory is None:
            raise ClusterError("the cluster has no directory; call start()")
        return self._directory

    def url(self, database: str = "postgres") -> str:
        """Return the libpq URL of a database, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def log(self) -> str:
        """Return what the server has logged so far."""
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start the server and wait until it answers; the first time, create it too."""
        if self._process is not None:
            return
        try:
            if self._directory is None:
                self._initialise()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server, gently if it lets us, and remove its directory."""
        self._shut_down()
        if self._directory is not None:
            segments.remove(self._directory / "data")
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            self._port = None

    def restart(self) -> None:
        """Shut down and start again with the same data and port."""
        self._shut_down()
        self.start()

    def kill(self) -> None:
        """End every process of the server by SIGKILL; `start` then does crash recovery."""
        if self._process is None:
            return
        # A stopped postmaster starts no backend between the listing and the kill.
        self._process.send_signal(signal.SIGSTOP)
        family = [self._process.pid, *children(self._process.pid)]
        for pid in reversed(family):
            send(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        wait_for(lambda: not any(alive(pid) for pid in family), _STOP_WITHIN)

    def _initialise(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="tenure-pg-", dir=self._parent))
        if self._uid is not None and self._gid is not None:
            os.chown(self._directory, self._uid, self._gid)
            self._bin = self._reachable(self._installed)
        program, *arguments = self._making()
        if self._popen(program, *arguments).wait() != 0:
            raise ClusterError(f"{program} failed:\n{self._log_end()}")

    def _making(self) -> list[str]:
        """What makes the directory `data`."""
        return [
            *("initdb", "--pgdata", "data", "--username", "postgres", "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions"),
        ]

    def _launch(self) -> None:
        chosen = self._port
        for tries_left in (2, 1, 0):
            self._port = chosen or free_port()
            settings = {
                "listen_addresses": "127.0.0.1",
                **self.settings,
                "port": str(self._port),
                "unix_socket_directories": str(self.directory),
            }
            options = [
                part for name, value in settings.items() for part in ("-c", f"{name}={value}")
            ]
            logged = len(self.log())
            self._process = self._popen("postgres", "-D", "data", *options)
            if wait_for(self._answered_or_ended, _START_WITHIN) and self._process.poll() is None:
                return
            self._shut_down()
            if chosen or not tries_left or "Address already in use" not in self.log()[logged:]:
                raise ClusterError(f"PostgreSQL {self.major} did not start:\n{self._log_end()}")

    def _answered_or_ended(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            return True
        try:
            # By the socket in our own directory: no other server can answer there.
            psycopg.connect(
                host=str(self.directory), port=self.port, user="postgres", dbname="postgres"
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    def _shut_down(self) -> None:
        """SIGINT (fast), then SIGQUIT (immediate), then SIGKILL."""
        if self._process is None:
            return
        for request in (signal.SIGINT, signal.SIGQUIT):
            self._process.send_signal(request)
            try:
                self._process.wait(_STOP_WITHIN)
            except subprocess.TimeoutExpired:
                continue
            self._process = None
            return
        self.kill()

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Run a program of the server as its user, in its directory, into its log."""
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                [self._bin / program, *arguments],
                cwd=self.directory,
                env={**_environment(), **self._extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the tests, not for the server
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - it takes no lock
                user=self._uid,
                group=self._gid,
                extra_groups=None if self._uid is None else [],
            )

    def _reachable(self, directory: Path) -> Path:
        """Return the binaries, copied if the server's user cannot reach them where they are."""
        try:
            subprocess.run(
                [directory / "postgres", "--version"],
                check=True,
                stdout=subprocess.DEVNULL,
                cwd=self.directory,
                user=self._uid,
                group=self._gid,
                extra_groups=[],
            )
        except PermissionError:
            copy = shutil.copytree(directory.parent, self.directory / "install", symlinks=True)
            return copy / directory.name
        return directory

    def _log_end(self) -> str:
        return "\n".join(self.log().splitlines()[-20:])


def unprivileged_user() -> tuple[int | None, int | None]:
    """PostgreSQL refuses to run as root; return whom to run it as, if we are root."""
    if os.geteuid() != 0:
        return None, None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return user.pw_uid, user.pw_gid
    raise ClusterError("no user to run PostgreSQL as; run: useradd --system postgres")


def _environment() -> dict[str, str]:
    """The caller's environment without what would steer the server elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kept_port() -> int:
    """A free port that no client is given while its server is away and others call there."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100):
        port = first - 1 - secrets.randbelow(first // 2)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ClusterError(f"no free port below {first}")


def memory() -> Path | None:
    """Where files are kept in memory, if there is room enough; else None, for the usual place.

    The suites make a database for every test, of 600 files: twice as quick as on a disk.
    """
    try:
        there = os.statvfs(_MEMORY)
    except OSError:
        return None
    return _MEMORY if there.f_bavail * there.f_frsize >= _ROOM else None
