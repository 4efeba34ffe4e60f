"""The directory of a private server: who may be in it, its locks, and what the server says there.

`gate` is held while the server is started, left or ended; `users` is shared by all who use it;
`kept` is the minder's, and says which process the server is. `data` and `log` are the server's.
"""

import fcntl
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenure.errors import ConfigError


@contextmanager
def gate(directory: Path, *, make: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the directory's gate; FileNotFoundError if it is not there, unless it is to be made,
    and BlockingIOError if it is held, unless one waits."""
    while True:
        if make:
            _make(directory)
        held = open_file(directory / "gate", create=make)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # The one who held it before may have taken the directory away.
            if _is(held, directory / "gate"):
                yield
                return
        finally:
            os.close(held)


def open_file(path: Path, *, create: bool = True) -> int:
    """A file to lock, which nobody else can open."""
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)


def locked(path: Path) -> bool:
    """Whether somebody holds a lock on the file; one that is not there is not held."""
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


def server_says(directory: Path) -> list[str]:
    """The server's own file: pid, data, start, port, socket directory, address, key, status."""
    with suppress(FileNotFoundError):
        text = (directory / "data/postmaster.pid").read_text()
        return [line.strip() for line in text.splitlines()]
    return []


def log_end(directory: Path) -> str:
    """The last that the server has logged."""
    log = (directory / "log").read_text(errors="replace")
    return "\n".join(log.splitlines()[-20:])


def unprivileged() -> tuple[int, int] | None:
    """PostgreSQL refuses to run as root: the user and group to run it as, if we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
    raise ConfigError(
        "PostgreSQL does not run as root, and there is no user to run it as; "
        "run: useradd --system postgres"
    )


def _is(file: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _make(directory: Path) -> None:
    """Make it, unless it is there; one that is anybody else's, or holds other things, is refused:
    it may be removed with the server."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        other = not (directory / "gate").exists() and any(directory.iterdir())
        server = unprivileged()
        owners = {os.geteuid()} | ({server[0]} if server else set())
        refused = other or directory.lstat().st_uid not in owners
    except PermissionError:
        refused = True
    if refused:
        raise ConfigError(
            f"{directory} cannot take a private PostgreSQL: it is another user's, or holds other "
            "things; name a directory that is empty or not there yet"
        )
