"""A private server's directory: its owner, its locks and the server's own files.

`gate` is locked while the server starts, stops or loses a user. `users` is a lock shared by all
users. `kept` is locked by the daemon and contains the server's pid. `log` contains the server's
output.

If we are root, the server runs as another user, who owns `data` and `sockets`. Root owns the
directory and everything else in it, so the server's user can't replace a file that root opens.
"""

import errno
import fcntl
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenure.errors import ConfigError


@contextmanager
def gate(directory: Path, *, make: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock on the directory's `gate` file.

    Raises FileNotFoundError if the directory doesn't exist and `make` is false, and BlockingIOError
    if the gate is locked and `wait` is false.
    """
    while True:
        if make:
            _make(directory)
        held = open_file(directory / "gate", create=make)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # The previous holder may have removed the directory.
            if _is(held, directory / "gate"):
                yield
                return
        finally:
            os.close(held)


def open_file(path: Path, *, create: bool = True, flags: int = os.O_RDWR) -> int:
    """Open a file that no other user can open. Raises ConfigError if it is a symbolic link."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ConfigError(f"{path} must be a file, got a symbolic link; remove it") from error


def locked(path: Path) -> bool:
    """Return whether another process has locked the file. A missing file isn't locked."""
    try:
        file = open_file(path, create=False)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def server_status(directory: Path) -> list[str]:
    """Read postmaster.pid: pid, data, start, port, socket directory, address, key, status."""
    # If we are root, this file belongs to another user, so don't follow a link or wait for a pipe.
    flags = os.O_RDONLY | os.O_NONBLOCK
    with suppress(FileNotFoundError):
        file = open_file(directory / "data/postmaster.pid", create=False, flags=flags)
        with os.fdopen(file) as opened:
            return [line.strip() for line in opened]
    return []


def log_end(directory: Path) -> str:
    """Return the last lines of the server's log."""
    file = open_file(directory / "log", create=False, flags=os.O_RDONLY)
    with os.fdopen(file, errors="replace") as log:
        return "\n".join(log.read().splitlines()[-20:])


def unprivileged() -> tuple[int, int] | None:
    """If we are root, return the user and group for PostgreSQL, which refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
    raise ConfigError(
        "PostgreSQL does not run as root, and user postgres does not exist; create it: "
        "useradd --system postgres"
    )


def _is(file: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _make(directory: Path) -> None:
    """Create the directory if it doesn't exist.

    Refuse a directory that belongs to another user or contains other files, because it may be
    deleted later.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        other = not (directory / "gate").exists() and any(directory.iterdir())
        server = unprivileged()
        owners = {os.geteuid()} | ({server[0]} if server else set())
        refused = other or directory.lstat().st_uid not in owners
    except PermissionError:
        refused, server = True, None
    if refused:
        raise ConfigError(
            f"{directory} cannot hold a private PostgreSQL: it belongs to another user or has "
            "other files; choose an empty or new directory"
        )
    if server is not None:
        # The server's user only passes through.
        os.chown(directory, 0, 0)
        directory.chmod(0o711)


def give(path: Path, user: tuple[int, int] | None) -> Path:
    """Create a directory that only the server's user can enter, unless it already exists."""
    path.mkdir(mode=0o700, exist_ok=True)
    if user is not None:
        os.chown(path, *user, follow_symlinks=False)
    return path
