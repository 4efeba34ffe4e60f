"""`tenure dev`, and its directory.

The directory `.tenure`, in which `tenure dev` keeps what belongs to it.

`pid` says which process it is and is locked by it; `database_url` says where its private
PostgreSQL is. Other programs in the project read both. `postgres` has the server's data.
"""

import fcntl
import os
import time
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tenure import _settings
from tenure.cli.dev_children import DevDashboard
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import Concurrency, Grace, LogLevel, Processes, Queues, Target, names
from tenure.cli.output import print_error, print_note

if TYPE_CHECKING:
    from tenure._local_postgres import PrivatePostgres
    from tenure.cli.dev_children import PreparedApp


_TRIES = 10
_PAUSE = 0.02
_ELSEWHERE = Path("/var/lib/tenure")


class DevDirectory:
    """The directory as long as a `tenure dev` runs; the private server ends with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server: PrivatePostgres | None = None
        self._lock: int | None = None
        self.where: Path | None = None

    def __enter__(self) -> Self:
        try:
            self._directory.mkdir(exist_ok=True)
            # The server may be another user's, who has to pass through.
            self._directory.chmod(0o711)
            self._write(".gitignore", "*\n")
            self._be_the_first()
        except OSError as error:
            raise CommandError(
                "`tenure dev` has no place for what it keeps",
                str(error),
                "run it where you can write, in the directory with your code",
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
        """Whether no other `tenure dev` runs here."""
        return self._lock is not None

    def _be_the_first(self) -> None:
        """Hold the lock on `pid`, or say who holds it."""
        lock = os.open(self._directory / "pid", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        for _ in range(_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Another one, or a program that looks for one just now.
                time.sleep(_PAUSE)
            else:
                self._lock = lock
                # One that was killed left its words behind; under our lock they would be believed.
                self._forget()
                os.write(lock, f"{os.getpid()}\n".encode())
                return
        other = os.read(lock, 20).decode().strip()
        os.close(lock)
        print_note(f"`tenure dev` runs here already, as process {other}; this adds a worker")

    def _forget(self) -> None:
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
        (self._directory / "database_url").unlink(missing_ok=True)

    def start_database(self) -> None:
        """Start the private server and let programs in the project know of it."""
        from tenure._local_postgres import PrivatePostgres, find_binaries

        self.where = self._place()
        if find_binaries() is None:
            raise CommandError(
                "there is no database to work with",
                "none is configured, and no PostgreSQL server, 15 or newer, is installed here",
                "install one: apt-get install postgresql (Fedora: dnf install postgresql-server);"
                ' or write in tenure.toml: database_url = "postgresql://user@host/database"',
            )
        self._server = PrivatePostgres(self.where, durable=True)
        self._write("database_url", f"{self._server.start()}\n")

    def _place(self) -> Path:
        """Where the server's data are. It does not run as root, and its user must get there."""
        directory = self._directory.resolve()
        if os.geteuid() == 0 and not all(up.stat().st_mode & 0o001 for up in directory.parents):
            return _ELSEWHERE / sha256(bytes(directory)).hexdigest()[:16]
        return directory / "postgres"

    def _write(self, name: str, text: str) -> None:
        """Write a file that only this user reads; whoever reads it finds all of it or none."""
        draft = self._directory / f"{name}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
            file.write(text)
        draft.replace(self._directory / name)


def dev(
    target: Target = None,
    *,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    grace: Grace = None,
    log_level: LogLevel = None,
) -> int:
    """Run a worker that reloads when the code changes, with all that it needs, and the dashboard.

    If no database is configured, a private PostgreSQL runs as long as this does; its data stay.
    """
    import asyncio

    from tenure.cli.dev_children import AppLoadError, prepare
    from tenure.worker import main
    from tenure.worker.reloader import FileWatcher

    app, project, served = _settings.target(target), _settings.project(), names(queues)
    slots = _settings.resolve("concurrency", concurrency)
    with DevDirectory(project / _settings.DEV_DIRECTORY) as own, DevDashboard() as showing:
        while True:
            changes = FileWatcher(project)
            try:
                prepared = prepare(app, own.start_database)
            except AppLoadError as broken:
                print_error("the app cannot be loaded", str(broken), "mend that, and save it")
            else:
                print_note(f"database: {_described(own, prepared)}")
                print_note(f"schema:   {prepared.schema}, {prepared.migrated}")
                served_by = ", ".join(_settings.resolve("queues", served) or prepared.queues)
                print_note(f"worker:   {app}, {slots} slots, queues {served_by}")
                if own.is_first:
                    showing.start(app)
                print_note("Edit a .py file and it is reloaded. Ctrl-C ends all of it.")
                code = main(
                    app,
                    queues=served,
                    concurrency=slots,
                    processes=processes,
                    grace=grace,
                    log_level=log_level,
                    watched=changes,
                )
                if code != Exit.FAILED:
                    return code
            print_note("waiting for the next change; Ctrl-C ends")
            asyncio.run(changes.wait_until_stable())


def _described(own: DevDirectory, prepared: "PreparedApp") -> str:
    if own.where is None:
        return prepared.database
    return f"a private PostgreSQL in {own.where}; programs here find it while this runs"
