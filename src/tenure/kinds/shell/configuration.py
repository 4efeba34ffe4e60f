"""The worker's configuration of shell work: `[kinds.shell]` in tenure.toml."""

import os
import pwd
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tenure import _settings
from tenure._log import Log
from tenure._model.ids import Json
from tenure._model.outcome import GiveUp
from tenure.errors import ConfigError
from tenure.kinds.settings import is_secret_name, settings_of
from tenure.kinds.shell.arguments import VARIABLE

_PATH = "/usr/local/bin:/usr/bin:/bin"
# These run any command that a job passes to them.
_INTERPRETERS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "xargs", "sudo", "su", "ssh"}
)
_GLOB = frozenset("*?[")
log: Log = Log("tenure")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """What commands may do on this worker.

    Attributes:
        allow: The executables that jobs may run.
        cwd: The directories in which they may run.
        env: The names of variables that commands get and jobs may set.
        secrets: The names of secrets that jobs may use.
        umask: The file mode mask.
        memory: The most private memory of one process, in bytes.
        cpu: The most processor time of one process, in seconds.
        files: The most open files of one process.
        file_size: The largest file that a process may write, in bytes.
        processes: The most processes that one command may have at a time.
        user: The user that commands run as, or None for the worker's user.
        sandbox: `"bwrap"` or None.
        writable: The directories that the sandbox mounts for writing.
        network: Whether the sandbox keeps the network.
    """

    allow: Sequence[str] = ()
    cwd: Sequence[str] = ()
    env: Sequence[str] = ()
    secrets: Sequence[str] = ()
    umask: int = 0o077
    memory: int | None = None
    cpu: int | None = None
    files: int = 1024
    file_size: int | None = None
    processes: int = 256
    user: str | None = None
    sandbox: str | None = None
    writable: Sequence[str] = ()
    network: bool = False

    def executable(self, program: str) -> str:
        """Return the allowed path for a program that a job names.

        Raises:
            GiveUp: The program isn't allowed, or its name is ambiguous.
        """
        if program in self.allow:
            return program
        named = [path for path in self.allow if Path(path).name == program]
        if len(named) == 1:
            return named[0]
        if named:
            raise GiveUp(
                f"argv[0] must be unambiguous, got {program!r}; write one of {', '.join(named)}"
            )
        raise GiveUp(
            f"argv[0] must be an executable that this worker allows, got {program!r}; add its "
            "absolute path to allow in [kinds.shell] of the worker's tenure.toml"
        )

    def directory(self, cwd: str | None) -> str:
        """Return the directory in which a command starts."""
        if cwd is not None:
            return cwd
        return self.cwd[0] if self.cwd else "/"

    def directories(self) -> Sequence[str]:
        """Return the directories in which commands may start, without symbolic links."""
        return [os.path.realpath(path) for path in self.cwd or ("/",)]

    def check_variable(self, name: str, value: Json) -> None:
        """Raise GiveUp if a job may not set this variable or use this secret."""
        if name not in self.env:
            raise GiveUp(
                f"env must have names that this worker allows, got {name!r}; add it to env in "
                "[kinds.shell] of the worker's tenure.toml"
            )
        if isinstance(value, dict) and value.get("secret") not in self.secrets:
            raise GiveUp(
                f"env[{name!r}] must name a secret that commands on this worker may use, got "
                f"{value.get('secret')!r}; add it to secrets in [kinds.shell] of the worker's "
                "tenure.toml"
            )

    def base_environment(self) -> dict[str, str]:
        """Return the variables that each command gets from the worker."""
        own = {name: os.environ[name] for name in self.env if name in os.environ}
        return {"PATH": _PATH, **own}

    def limits(self) -> list[tuple[int, int]]:
        """Return the resource limits of the command's processes."""
        limits = {
            # Not 0: the kernel ignores that for a core dump that it pipes to a program. With a
            # limit of 1 byte, it writes neither a file nor to a program.
            resource.RLIMIT_CORE: 1,
            resource.RLIMIT_DATA: self.memory,
            resource.RLIMIT_CPU: self.cpu,
            resource.RLIMIT_NOFILE: self.files,
            resource.RLIMIT_FSIZE: self.file_size,
        }
        return [(number, limit) for number, limit in limits.items() if limit is not None]

    def account(self) -> tuple[int, int, Sequence[int]]:
        """Return the user, group and supplementary groups that commands run with.

        Raises:
            ConfigError: The user doesn't exist.
        """
        if self.user is None:
            return os.geteuid(), os.getegid(), os.getgroups()
        try:
            entry = pwd.getpwnam(self.user)
        except KeyError:
            raise ConfigError(
                f"kinds.shell.user must be a user of this machine, got {self.user!r}; create the "
                "user, or write another one"
            ) from None
        return entry.pw_uid, entry.pw_gid, os.getgrouplist(self.user, entry.pw_gid)

    def wrapped(self, argv: Sequence[str], cwd: str) -> list[str]:
        """Return the command line, in a sandbox if one is configured."""
        if self.sandbox is None:
            return list(argv)
        options = ["--unshare-all", "--die-with-parent", "--new-session"]
        options += ["--share-net"] if self.network else []
        options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for private in ("/tmp", "/var/tmp"):  # noqa: S108 - private ones
            options += ["--tmpfs", private]
        for path in self.writable:
            options += ["--bind", path, path]
        return [bwrap(), *options, "--chdir", cwd, "--", *argv]


def load() -> ShellSettings:
    """Read and check the worker's configuration.

    Raises:
        ConfigError: A setting is unknown or invalid.
    """
    table = settings_of("shell")
    known = [field.name for field in fields(ShellSettings)]
    for name in table:
        if name not in known:
            raise ConfigError(
                f"kinds.shell.{name} is not a setting; the settings are {', '.join(known)}"
            )
    return ShellSettings(**{name: _READERS[name](name, value) for name, value in table.items()})


def check_machine(settings: ShellSettings) -> None:
    """Check what a worker needs to run commands.

    Raises:
        ConfigError: This machine can't run commands with this configuration.
    """
    if sys.platform != "linux" or not Path("/proc/self/stat").exists():
        raise ConfigError(
            "shell work needs Linux with /proc, because only Linux can find and kill the daemons "
            "that a command starts; run these workers on Linux, or in a container"
        )
    user, group, groups = settings.account()
    if os.geteuid() == 0 and settings.user is None:
        raise ConfigError(
            "kinds.shell.user must be set for a worker that runs as root, because the kernel does "
            'not limit the processes of root; write it as in user = "nobody", or run the worker '
            "as another user"
        )
    if os.geteuid() not in (0, user):
        raise ConfigError(
            f"kinds.shell.user must be the worker's own user, got {settings.user!r}; only a worker "
            "that runs as root can run commands as another user"
        )
    if not settings.allow:
        raise ConfigError(
            "kinds.shell.allow must be a list of executables, got none; write it as in "
            'allow = ["/usr/bin/pg_dump"]'
        )
    for path in settings.allow:
        _check_executable(path)
    for name in ("cwd", "writable"):
        for path in getattr(settings, name):
            if not Path(path).is_dir():
                raise ConfigError(
                    f"kinds.shell.{name} must be a list of directories, got {path!r}; create the "
                    "directory, or remove it from the list"
                )
    if settings.sandbox is not None:
        _check_sandbox(settings, user, group, groups)


def _check_executable(path: str) -> None:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise ConfigError(
            f"kinds.shell.allow must be a list of executables, got {path!r}: {error.strerror}; "
            "install the program, or remove it from the list"
        ) from None
    if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
        raise ConfigError(
            f"kinds.shell.allow must be a list of executables, got {path!r}, which this worker "
            "cannot execute; check its mode and owner"
        )
    if status.st_mode & stat.S_IWOTH:
        raise ConfigError(
            f"kinds.shell.allow must not have files that every user can change, got {path!r}; "
            f"run: chmod o-w {path}"
        )
    if Path(path).name in _INTERPRETERS or Path(path).resolve().name in _INTERPRETERS:
        log.warning("kinds.shell.allow has %s, so jobs can run any command on this worker", path)


def _check_sandbox(settings: ShellSettings, user: int, group: int, groups: Sequence[int]) -> None:
    path = bwrap()
    if Path(path).stat().st_mode & stat.S_ISUID:
        raise ConfigError(
            f"kinds.shell.sandbox needs a bubblewrap without setuid, got {path} with it; enable "
            f"unprivileged user namespaces and run: chmod u-s {path}"
        )
    as_user: Any = {"user": user, "group": group, "extra_groups": groups}
    try:
        tried = subprocess.run(  # noqa: S603 - fixed arguments
            settings.wrapped([path, "--version"], "/"),
            capture_output=True,
            timeout=10,
            check=False,
            text=True,
            errors="replace",
            **({} if user == os.geteuid() else as_user),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"kinds.shell.sandbox does not work: {error}; check {path}") from None
    if tried.returncode:
        reason = tried.stderr.strip().splitlines()[-1:] or [f"exit code {tried.returncode}"]
        raise ConfigError(
            f"kinds.shell.sandbox does not work on this machine: {reason[0]}; bubblewrap needs "
            "unprivileged user namespaces, which this kernel or container may forbid"
        )


def bwrap() -> str:
    """Return the path of bubblewrap.

    Raises:
        ConfigError: It isn't installed.
    """
    found = shutil.which("bwrap", path=_PATH)
    if found is None:
        raise ConfigError(
            'kinds.shell.sandbox is "bwrap", but bubblewrap is not installed; install the package '
            "bubblewrap, or remove the setting"
        )
    return found


def _paths(name: str, value: Any) -> Sequence[str]:
    for path in _texts(name, value):
        if not path.startswith("/") or _GLOB & set(path) or os.path.normpath(path) != path:
            raise ConfigError(
                f"kinds.shell.{name} must be a list of absolute paths without patterns, got "
                f"{path!r}; write each path in full, as in '/usr/bin/pg_dump'"
            )
    return tuple(value)


def _variables(name: str, value: Any) -> Sequence[str]:
    for variable in _texts(name, value):
        if not VARIABLE.fullmatch(variable) or variable.startswith(("LD_", "TENURE_")):
            raise ConfigError(
                f"kinds.shell.{name} must be a list of variable names, got {variable!r}; names "
                "that start with LD_ or TENURE_ are reserved"
            )
    return tuple(value)


def _secret_names(name: str, value: Any) -> Sequence[str]:
    for secret in _texts(name, value):
        if not is_secret_name(secret):
            raise ConfigError(
                f"kinds.shell.{name} must be a list of secrets' names, got {secret!r}; write "
                "shop_db for the secret in TENURE_SECRET_SHOP_DB"
            )
    return tuple(value)


def _texts(name: str, value: Any) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(
            f'kinds.shell.{name} must be a list of strings, got {value!r}; write it as ["…"]'
        )
    return tuple(value)


def _mask(name: str, value: Any) -> int:
    try:
        mask = int(value, 8) if isinstance(value, str) else -1
    except ValueError:
        mask = -1
    if not 0 <= mask <= 0o777:
        raise ConfigError(
            f'kinds.shell.{name} must be an octal string, got {value!r}; write it as "077"'
        )
    return mask


def _size(name: str, value: Any) -> int:
    size = _settings.size(f"kinds.shell.{name}", str(value))
    if size is None:
        raise AssertionError("a text has a size")
    return size


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(
            f"kinds.shell.{name} must be a whole number from 1, got {value!r}; write it without "
            "quotes"
        )
    return value


def _sandbox(name: str, value: Any) -> str | None:
    if value not in (None, "", "bwrap"):
        raise ConfigError(
            f'kinds.shell.{name} must be "bwrap", got {value!r}; remove the setting to run '
            "commands without a sandbox"
        )
    return value or None


def _user(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f'kinds.shell.{name} must be a user\'s name, got {value!r}; write it as in "nobody"'
        )
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(
            f"kinds.shell.{name} must be true or false, got {value!r}; write it without quotes"
        )
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "allow": _paths,
    "cwd": _paths,
    "env": _variables,
    "secrets": _secret_names,
    "umask": _mask,
    "memory": _size,
    "cpu": _count,
    "files": _count,
    "file_size": _size,
    "processes": _count,
    "user": _user,
    "sandbox": _sandbox,
    "writable": _paths,
    "network": _flag,
}
