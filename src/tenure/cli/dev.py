"""`tenure dev`, and its `.tenure` directory.

`pid` contains its process id, and `tenure dev` keeps that file locked. `database_url` contains the
URL of its private PostgreSQL. Other programs in the project read both files. `postgres` holds the
server's data.
"""

import fcntl
import os
import time
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from tenure import _settings
from tenure.cli.dev_children import DevDashboard
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    Concurrency,
    Kinds,
    LogLevel,
    Processes,
    Queues,
    Target,
    grace_option,
    kind_names,
    queue_names,
)
from tenure.cli.output import print_error, print_note

if TYPE_CHECKING:
    from tenure._local_postgres import PrivatePostgres
    from tenure.cli.dev_children import PreparedApp


_TRIES = 10
_PAUSE = 0.02
_ELSEWHERE = Path("/var/lib/tenure")
SignInLink = Annotated[
    bool,
    typer.Option("--sign-in-link", help="Print a sign-in link for a configured database too."),
]
Grace = Annotated[float | None, grace_option("Give running jobs this long at reload or exit.")]


class DevDirectory:
    """The `.tenure` directory while `tenure dev` runs. The private server stops with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server: PrivatePostgres | None = None
        self._lock: int | None = None
        self.where: Path | None = None

    def __enter__(self) -> Self:
        try:
            self._directory.mkdir(exist_ok=True)
            # The server may run as another user, who must be able to enter the directory.
            self._directory.chmod(0o711)
            self._write(".gitignore", "*\n")
            self._lock_pid_file()
        except OSError as error:
            raise CommandError(
                "`tenure dev` cannot create its directory .tenure",
                str(error),
                "run it in the directory with your code, where you can write",
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._forget()
            os.close(self._lock)
        if self._server is not None:
            self._server.stop()

    @property
    def is_first(self) -> bool:
        """Whether this is the only `tenure dev` running here."""
        return self._lock is not None

    def _lock_pid_file(self) -> None:
        """Lock `pid`, or print which process holds the lock."""
        lock = os.open(self._directory / "pid", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        for _ in range(_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Another `tenure dev`, or a program that is checking for one right now.
                time.sleep(_PAUSE)
            else:
                self._lock = lock
                # A killed `tenure dev` left its files behind, and our lock would make them look
                # current.
                self._forget()
                os.write(lock, f"{os.getpid()}\n".encode())
                return
        other = os.read(lock, 20).decode().strip()
        os.close(lock)
        print_note(f"`tenure dev` already runs here, as process {other}; adding a worker")

    def _forget(self) -> None:
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
        (self._directory / "database_url").unlink(missing_ok=True)

    def start_database(self) -> None:
        """Start the private server, and write its URL for other programs in the project."""
        from tenure._local_postgres import PrivatePostgres, find_binaries

        self.where = self._place()
        if find_binaries() is None:
            raise CommandError(
                "there is no database",
                "none is configured, and PostgreSQL 15 or newer is not installed here",
                "install it: apt-get install postgresql (Fedora: dnf install postgresql-server),"
                ' or write in tenure.toml: database_url = "postgresql://user@host/database"',
            )
        self._server = PrivatePostgres(self.where, durable=True)
        self._write("database_url", f"{self._server.start()}\n")

    def _place(self) -> Path:
        """Return the data directory. The server's user, who isn't root, needs access to it."""
        directory = self._directory.resolve()
        if os.geteuid() == 0 and not all(up.stat().st_mode & 0o001 for up in directory.parents):
            return _ELSEWHERE / sha256(bytes(directory)).hexdigest()[:16]
        return directory / "postgres"

    def _write(self, name: str, text: str) -> None:
        """Write a file that only this user can read.

        Readers see either the whole file or nothing.
        """
        draft = self._directory / f"{name}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
            file.write(text)
        draft.replace(self._directory / name)


def dev(
    target: Target = None,
    *,
    queues: Queues = None,
    kinds: Kinds = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    grace: Grace = None,
    log_level: LogLevel = None,
    sign_in_link: SignInLink = False,
) -> int:
    """Run a worker with reload, and the dashboard.

    Migrates the schema first. Changing a `.py` file in the project reloads the worker once running
    jobs have finished. If the new code fails to load, the old code keeps running. The project is
    the nearest directory with `tenure.toml` (default: the current directory).

    The dashboard needs the extra `tenure[server]`. The printed link signs you in once, within a
    minute. `tenure session link dev` prints a new one. The link needs an access token with all
    rights, which is revoked at the end. If a database is configured, others may use it too. Then
    `tenure dev` creates no token and prints no link, unless you add `--sign-in-link`.

    If no database is configured, `tenure dev` starts a private PostgreSQL, which must be installed
    (15 or newer). It opens no port. Its data is kept in `.tenure/postgres`. To start over, delete
    `.tenure`. While it runs, your programs in this directory and below use it too. It stops with
    `tenure dev`, even after `kill -9`. If you are root, PostgreSQL runs as an unprivileged user. If
    that user can't enter the project, the data is in `/var/lib/tenure`.

    A second `tenure dev` in the same directory adds a worker. Ctrl-C or SIGTERM stops everything.
    """
    import asyncio

    from tenure.cli.dev_children import AppLoadError, prepare
    from tenure.worker import main
    from tenure.worker.reloader import FileWatcher

    app, project, served = _settings.target(target), _settings.project(), queue_names(queues)
    slots = _settings.resolve("concurrency", concurrency)
    with DevDirectory(project / _settings.DEV_DIRECTORY) as own, DevDashboard() as dashboard:
        while True:
            changes = FileWatcher(project)
            try:
                prepared = prepare(app, own.start_database)
            except AppLoadError as broken:
                print_error("the app cannot be loaded", str(broken), "fix the error, and save")
            else:
                print_note(f"database: {_described(own, prepared)}")
                print_note(f"schema:   {prepared.schema}, {prepared.migrated}")
                served_by = ", ".join(_settings.resolve("queues", served) or prepared.queues)
                print_note(f"worker:   {app}, {slots} slots, queues {served_by}")
                if own.is_first:
                    dashboard.start(app, sign_in_link=sign_in_link)
                print_note("Edit a .py file to reload. Press Ctrl-C to stop.")
                code = main(
                    app,
                    queues=served,
                    kinds=kind_names(kinds),
                    concurrency=slots,
                    processes=processes,
                    grace=grace,
                    log_level=log_level,
                    watched=changes,
                )
                if code != Exit.FAILED:
                    return code
            print_note("waiting for the next change")
            asyncio.run(changes.wait_until_stable())


def _described(own: DevDirectory, prepared: "PreparedApp") -> str:
    if own.where is None or not prepared.is_private:
        return prepared.database
    return f"a private PostgreSQL in {own.where}, for all programs in this directory"
