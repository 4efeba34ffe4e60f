"""A program's settings, from an argument, the environment, tenure.toml, or the default.

Settings that can change at run time are stored in the database instead. The program's name and
version are here too, because each schedule records which program declared it.

`tenure probe` imports this file, so it imports only the standard library and `errors`.
"""

import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tenure.errors import ConfigError, InvalidValue

# `tenure dev`'s directory inside the project.
DEV_DIRECTORY = ".tenure"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMG]i?B?|B|)", re.IGNORECASE)
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
# Files whose readers were warned about, once per process.
_warned: set[Path] = set()
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class SettingSpec(NamedTuple):
    """One setting: NAME in tenure.toml, TENURE_NAME in the environment, or an argument."""

    kind: type
    built_in: Any
    argument: str
    least: int | None = None
    among: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


PROGRAM_SETTINGS: Mapping[str, SettingSpec] = {
    "app": SettingSpec(str, None, "MODULE:APP"),
    "database_url": SettingSpec(str, None, "--database-url", also=("DATABASE_URL",)),
    "schema": SettingSpec(str, "tenure", "--schema"),
    "pool_size": SettingSpec(int, 10, "Tenure(pool_size=…)", least=1),
    "listen": SettingSpec(bool, None, "Tenure(listen=…)"),
    "redis_url": SettingSpec(str, None, "Tenure(redis=…)"),
    "program": SettingSpec(str, None, "Tenure(program=…)"),
    "version": SettingSpec(str, None, "Tenure(version=…)"),
    "queues": SettingSpec(list, None, "--queues"),
    "kinds": SettingSpec(list, None, "--kinds"),
    "concurrency": SettingSpec(int, 10, "--concurrency", least=1),
    "processes": SettingSpec(int, 1, "--processes", least=1),
    "lease": SettingSpec(float, None, "--lease", least=1),
    "grace": SettingSpec(float, 25.0, "--grace", least=0),
    "load_timeout": SettingSpec(float, 60.0, "--load-timeout", least=1),
    "max_jobs": SettingSpec(int, None, "--max-jobs", least=1),
    "max_memory": SettingSpec(str, None, "--max-memory"),
    "name": SettingSpec(str, None, "--name"),
    "host": SettingSpec(str, "127.0.0.1", "--host"),
    "port": SettingSpec(int, 8400, "--port", least=0),
    "max_connections": SettingSpec(int, 4096, "--max-connections", least=1),
    "max_connections_per_address": SettingSpec(int, 512, "--max-connections-per-address", least=1),
    "public_url": SettingSpec(str, None, "--public-url"),
    "allowed_hosts": SettingSpec(list, None, "--allowed-hosts"),
    "trusted_proxies": SettingSpec(list, None, "--trusted-proxies"),
    "proxy_user_header": SettingSpec(str, None, "--proxy-user-header"),
    "proxy_roles": SettingSpec(list, None, "--proxy-roles"),
    "session_idle": SettingSpec(float, 3600.0, "--session-idle", least=1),
    "session_lifetime": SettingSpec(float, 43_200.0, "--session-lifetime", least=1),
    "environment": SettingSpec(str, None, "--environment"),
    "environment_colour": SettingSpec(
        str, "grey", "--environment-colour", among=("red", "amber", "green", "blue", "grey")
    ),
    "metrics_host": SettingSpec(str, "127.0.0.1", "--metrics-host"),
    "metrics_port": SettingSpec(int, None, "--metrics-port", least=0),
    "schedules": SettingSpec(bool, True, "--schedules"),
    "log_level": SettingSpec(
        str, "info", "--log-level", among=("debug", "info", "warning", "error", "critical")
    ),
    "log_format": SettingSpec(str, "text", "--log-format", among=("text", "json")),
}


def resolve(name: str, given: Any = None, *, built_in: Any = None) -> Any:
    """Return a setting from the argument, the environment, tenure.toml or its default."""
    if given is not None:
        return given
    source = PROGRAM_SETTINGS[name]
    for variable in (f"TENURE_{name.upper()}", *source.also):
        if text := os.environ.get(variable):
            return _checked(name, _parsed(source.kind, text), text, None)
    file = _file()
    if file is not None:
        value = _read(file).get(name)
        if name == "kinds" and isinstance(value, dict):
            value = value.get("run")
        if value not in (None, "", []):
            return _checked(name, _typed(source.kind, value), value, file)
    return source.built_in if built_in is None else built_in


def database_url(given: str | None = None) -> str:
    """Return the configured database URL, or the URL of this project's running `tenure dev`."""
    url: str | None = resolve("database_url", given or None) or dev_url()
    if url is None:
        raise ConfigError(
            f"no database is configured, and no `tenure dev` runs in {project()}; start "
            "`tenure dev`, or set TENURE_DATABASE_URL=postgresql://user@host/database, or write "
            'database_url = "postgresql://user@host/database" in tenure.toml'
        )
    return url


def kind_table(kind: str) -> Mapping[str, Any]:
    """Return the table `[kinds.KIND]` of tenure.toml, or an empty one."""
    file = _file()
    kinds = None if file is None else _read(file).get("kinds")
    values = kinds.get(kind, {}) if isinstance(kinds, dict) else {}
    if not isinstance(values, dict):
        raise ConfigError(f"kinds.{kind} in {file} must be a table; write it as [kinds.{kind}]")
    return values


def size(name: str, text: str | None) -> int | None:
    """Return a size in bytes. The text may use KiB, MiB or GiB."""
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise ConfigError(
            f"{name} must be a memory size, got {text!r}; write it as 512MiB or 1.5GiB"
        )
    return int(float(match[1]) * _BYTES[match[2].lower().removesuffix("b").removesuffix("i")])


def target(given: str | None = None) -> str:
    """Return the app as `module:attribute`."""
    app: str | None = resolve("app", given)
    if app is None:
        raise ConfigError(
            "no app is given; add it to the command, such as jobs:app for `app` in jobs.py, "
            'or write app = "jobs:app" in tenure.toml'
        )
    return app


def project() -> Path:
    """Return the nearest directory with tenure.toml or .tenure, or the current one."""
    for directory in _upwards():
        if (directory / "tenure.toml").is_file() or (directory / DEV_DIRECTORY).is_dir():
            return directory
    return Path.cwd()


def running(own: Path) -> int | None:
    """Return the pid of the `tenure dev` that uses this directory, if one is running.

    A running `tenure dev` holds a lock on the file. If the file isn't locked, its pid may belong to
    another process by now.
    """
    try:
        with (own / "pid").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read())
    except (OSError, ValueError):
        pass
    return None


def run_directory() -> Path:
    """Return the directory for the state files of this user's workers.

    This is TENURE_RUN_DIR, the user's runtime directory, or a directory in /tmp. The first worker
    creates it.
    """
    if given := os.environ.get("TENURE_RUN_DIR"):
        return Path(given)
    if users := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(users, "tenure")
    # Not TMPDIR, because the probe may not share the worker's environment.
    return Path(f"/tmp/tenure-{os.getuid()}")  # noqa: S108 - both sides must find it


def dev_url() -> str | None:
    """Return the URL of the private PostgreSQL that `tenure dev` runs for this project, if any."""
    own = project() / DEV_DIRECTORY
    try:
        # Don't trust a parent directory that belongs to another user.
        if running(own) is None or own.stat().st_uid != os.geteuid():
            return None
        return (own / "database_url").read_text().strip() or None
    except OSError:
        return None


def _upwards() -> Iterator[Path]:
    """Yield the current directory and its parents, as far up as the project may extend.

    Stop at the home directory, a directory with .git, or a mount point, because other users may own
    the directories above.
    """
    here, home = Path.cwd(), os.environ.get("HOME")
    last = Path(home).resolve() if home else None
    for directory in (here, *here.parents):
        yield directory
        if directory == last or (directory / ".git").exists() or directory.is_mount():
            return


def exposed_file() -> Path | None:
    """Return tenure.toml if it contains a URL with a password and other users can read the file."""
    file = _file()
    if file is None:
        return None
    return file if _is_exposed(file.stat(), _read(file)) else None


def _is_exposed(status: os.stat_result, values: Mapping[str, Any]) -> bool:
    urls = (values.get(name) for name in ("database_url", "redis_url"))
    return bool(status.st_mode & stat.S_IROTH) and any(
        isinstance(url, str) and _has_password(url) for url in urls
    )


def _has_password(url: str) -> bool:
    # As in user:password@host, ?password=…, and libpq's password=….
    return bool(re.search(r"//[^/@]*:[^/@]+@|\bpassword\s*=\s*[^\s&]", url))


def _file() -> Path | None:
    """Return tenure.toml from this directory or a parent."""
    files = (directory / "tenure.toml" for directory in _upwards())
    return next((file for file in files if file.is_file()), None)


def _read(file: Path) -> dict[str, Any]:
    """Read the file. Only this user or root may write to it, and all names must be settings."""
    import tomllib  # noqa: PLC0415 - only where there is such a file

    try:
        with file.open(encoding="utf-8") as opened:
            # Check both the link, if there is one, and the file that was opened, because the path
            # can change in between.
            status = os.fstat(opened.fileno())
            _refuse_foreign(file, file.lstat(), status)
            values = tomllib.loads(opened.read())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; fix the file") from error
    for name in values:
        if name not in PROGRAM_SETTINGS:
            raise ConfigError(f"{file} has an unknown setting {name!r}; {_nearest(name)}")
    if file not in _warned and _is_exposed(status, values):
        import logging  # noqa: PLC0415 - only for such a file

        _warned.add(file)
        logging.getLogger("tenure").warning(
            "%s has a password and every user can read it; run: chmod o-r %s", file, file
        )
    return values


def _refuse_foreign(file: Path, link: os.stat_result, opened: os.stat_result) -> None:
    """Raise ConfigError for a file that another user owns or can write to.

    The file names the database and the code that the program loads, so another user must not
    control it.
    """
    user = os.geteuid()
    for owner in (link.st_uid, opened.st_uid):
        if owner not in (user, 0):
            raise ConfigError(
                f"{file} must be owned by you (user {user}) or root, got user {owner}, who could "
                f"choose your database and code; if you trust it: chown {user} {file}"
            )
    if opened.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"{file} must be writable by its owner only, got mode {stat.S_IMODE(opened.st_mode):o},"
            f" so other users could choose your database and code; run: chmod go-w {file}"
        )


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only after a typo

    near = get_close_matches(name.lower().replace("-", "_"), PROGRAM_SETTINGS, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(PROGRAM_SETTINGS)}"


def _parsed(kind: type, text: str) -> Any:
    """Parse an environment variable as this type, or return None."""
    if kind is list:
        return [part.strip() for part in text.split(",") if part.strip()] or None
    if kind is bool:
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())
    try:
        return kind(text)
    except ValueError:
        return None


def _typed(kind: type, value: Any) -> Any:
    """Return a tenure.toml value if it has this type, or None."""
    if kind is float and type(value) is int:
        return float(value)
    if kind is list and not (
        isinstance(value, list) and all(isinstance(part, str) and part for part in value)
    ):
        return None
    return value if type(value) is kind else None


class _ValueKind(NamedTuple):
    rule: str
    in_file: str
    in_environment: str


_KINDS = {
    str: _ValueKind("a string", '"…"', "…"),
    int: _ValueKind("an integer", "10", "10"),
    float: _ValueKind("a number", "25", "25"),
    bool: _ValueKind("true or false", "false", "false"),
    list: _ValueKind("a list of names", '["mail", "default"]', "mail,default"),
}


def _checked(name: str, value: Any, raw: Any, file: Path | None) -> Any:
    """Return the value if it is valid for the setting. `file` is the file that it came from."""
    source = PROGRAM_SETTINGS[name]
    least, among = source.least, source.among
    if among and isinstance(value, str):
        value = value.lower()
    if (
        value is not None
        and (least is None or least <= value < float("inf"))
        and (not among or value in among)
    ):
        return value
    kind = _KINDS[source.kind]
    rule = f"one of {', '.join(among)}" if among else kind.rule
    if least is not None:
        rule += f" of at least {least}"
    # A string setting may be a secret. A number setting never is.
    shown = repr(raw) if source.kind is not str or among else f"a {type(raw).__name__}"
    if file is not None:
        example = f'"{source.built_in}"' if among else kind.in_file
        raise ConfigError(
            f"{name} in {file} must be {rule}, got {shown}; write it as {name} = {example}"
        )
    variable = f"TENURE_{name.upper()}"
    example = source.built_in if among else kind.in_environment
    raise ConfigError(f"{variable} must be {rule}, got {shown}; set it as {variable}={example}")


_OURS = "tenure"
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def module_name(name: str) -> str:
    """Return the name under which other modules import this one, even for `__main__`."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    # Code piped into Python has the file name <stdin>.
    return Path(file).stem if file and not file.startswith("<") else "__main__"


def calling_module() -> str:
    """Return the name of the module that called into Tenure."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect would read the source of every frame
    while True:
        name: str = frame.f_globals.get("__name__", "__main__")
        if frame.f_back is None or not f"{name}.".startswith(f"{_OURS}."):
            return module_name(name)
        frame = frame.f_back


def ordered(version: object) -> Sequence[int]:
    """Return a version as a tuple of numbers that can be compared.

    Trailing zeros are ignored, and a missing version is the lowest. Raises InvalidValue for a
    version that can't be ordered.
    """
    if version is None:
        return ()
    match = None
    # Not a float: 1.10 would become 1.1.
    if isinstance(version, str | int) and not isinstance(version, bool):
        match = _VERSION.fullmatch(str(version).strip())
    numbers = [int(part) for part in match[1].split(".")] if match else []
    if not numbers or max(numbers) > _LARGEST:
        raise InvalidValue(
            f"version must be numbers that grow with every release, got {version!r}; "
            'write it as version="2026.11.15", or use a build number'
        )
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
