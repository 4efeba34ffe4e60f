"""Settings of a program: argument, environment, tenure.toml, default.

Where the settings of a program come from: an argument, else the environment, else tenure.toml,
else built in. What can be changed at run time is elsewhere, in the database.

`tenure probe` imports this file: standard library and errors only.

Which program this is, and which release of it: by these a schedule knows whose code declares it.

Standard library and errors only.
"""

import fcntl
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tenure.errors import ConfigError, InvalidValue

# Where `tenure dev` keeps what belongs to it, in the project's directory.
DEV_DIRECTORY = ".tenure"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMG]i?B?|B|)", re.IGNORECASE)
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class SettingSpec(NamedTuple):
    """One setting: NAME in tenure.toml, TENURE_NAME in the environment, and an argument."""

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
    "concurrency": SettingSpec(int, 10, "--concurrency", least=1),
    "processes": SettingSpec(int, 1, "--processes", least=1),
    "grace": SettingSpec(float, 25.0, "--grace", least=0),
    "load_timeout": SettingSpec(float, 60.0, "--load-timeout", least=1),
    "max_jobs": SettingSpec(int, None, "--max-jobs", least=1),
    "max_memory": SettingSpec(str, None, "--max-memory"),
    "name": SettingSpec(str, None, "--name"),
    "host": SettingSpec(str, "127.0.0.1", "--host"),
    "port": SettingSpec(int, 8400, "--port", least=0),
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
    """What a setting is: as given, else by the environment, else by tenure.toml, else built in."""
    if given is not None:
        return given
    source = PROGRAM_SETTINGS[name]
    for variable in (f"TENURE_{name.upper()}", *source.also):
        if text := os.environ.get(variable):
            return _checked(name, _parsed(source.kind, text), text, None)
    file = _file()
    if file is not None:
        value = _read(file).get(name)
        if value not in (None, "", []):
            return _checked(name, _typed(source.kind, value), value, file)
    return source.built_in if built_in is None else built_in


def database_url(given: str | None = None) -> str:
    """The database's URL; where none is configured, that of the `tenure dev` that runs here."""
    url: str | None = resolve("database_url", given or None) or _private_url()
    if url is None:
        raise ConfigError(
            f"no database is configured, and no `tenure dev` runs in {project()}; start "
            "`tenure dev`, or set TENURE_DATABASE_URL=postgresql://user@host/database, or write "
            'database_url = "postgresql://user@host/database" in tenure.toml'
        )
    return url


def size(name: str, text: str | None) -> int | None:
    """The bytes that a size says: a number with KiB, MiB or GiB, or of bytes."""
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise ConfigError(
            f"{name} must be a size of memory, got {text!r}; write it as in 512MiB or 1.5GiB"
        )
    return int(float(found[1]) * _BYTES[found[2].lower().removesuffix("b").removesuffix("i")])


def target(given: str | None = None) -> str:
    """Where the app is: `module:attribute`."""
    app: str | None = resolve("app", given)
    if app is None:
        raise ConfigError(
            "no app is named; write it behind the command, as in jobs:app for `app` in jobs.py, "
            'or write app = "jobs:app" in tenure.toml'
        )
    return app


def project() -> Path:
    """The directory with tenure.toml or with what `tenure dev` keeps, here or above; else this."""
    for directory in _upwards():
        if (directory / "tenure.toml").is_file() or (directory / DEV_DIRECTORY).is_dir():
            return directory
    return Path.cwd()


def running(own: Path) -> int | None:
    """The process of the `tenure dev` that runs with this directory of its own, if one does.

    As long as it lives it holds a lock on the file: a number alone may be another's by now.
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
    """Where running workers of this user leave their state files; made by the first of them.

    TENURE_RUN_DIR, else the user's own run directory, else one in /tmp.
    """
    if given := os.environ.get("TENURE_RUN_DIR"):
        return Path(given)
    if users := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(users, "tenure")
    # By name and not by TMPDIR: whoever probes need not share the worker's environment.
    return Path(f"/tmp/tenure-{os.getuid()}")  # noqa: S108 - both sides must find it


def _private_url() -> str | None:
    own = project() / DEV_DIRECTORY
    try:
        # In a directory above, somebody else's word is not taken.
        if running(own) is None or own.stat().st_uid != os.geteuid():
            return None
        return (own / "database_url").read_text().strip() or None
    except OSError:
        return None


def _upwards() -> Iterator[Path]:
    here = Path.cwd()
    yield from (here, *here.parents)


def _file() -> Path | None:
    """tenure.toml here or in a directory above."""
    files = (directory / "tenure.toml" for directory in _upwards())
    return next((file for file in files if file.is_file()), None)


def _read(file: Path) -> dict[str, Any]:
    """What the file says; every name in it is a setting's."""
    import tomllib  # noqa: PLC0415 - only where there is such a file

    try:
        said = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; mend it") from error
    for name in said:
        if name not in PROGRAM_SETTINGS:
            raise ConfigError(f"{file} has {name!r}, which is no setting; {_nearest(name)}")
    return said


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for who mistyped

    near = get_close_matches(name.lower().replace("-", "_"), PROGRAM_SETTINGS, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(PROGRAM_SETTINGS)}"


def _parsed(kind: type, text: str) -> Any:
    """What a variable's text means as this kind; None if nothing."""
    if kind is list:
        return [part.strip() for part in text.split(",") if part.strip()] or None
    if kind is bool:
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower())
    try:
        return kind(text)
    except ValueError:
        return None


def _typed(kind: type, value: Any) -> Any:
    """A value of tenure.toml as this kind; None if it is of another."""
    if kind is float and type(value) is int:
        return float(value)
    if kind is list and not (
        isinstance(value, list) and all(isinstance(part, str) and part for part in value)
    ):
        return None
    return value if type(value) is kind else None


class _ValueKind(NamedTuple):
    words: str
    in_file: str
    in_environment: str


_KINDS = {
    str: _ValueKind("a text", '"…"', "…"),
    int: _ValueKind("a whole number", "10", "10"),
    float: _ValueKind("a number", "25", "25"),
    bool: _ValueKind("true or false", "false", "false"),
    list: _ValueKind("a list of names", '["mail", "default"]', "mail,default"),
}


def _checked(name: str, value: Any, said: Any, where: Path | None) -> Any:
    """The value, if it is what the setting can be. `where` is the file that said it."""
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
    wanted = f"one of {', '.join(among)}" if among else kind.words
    if least is not None:
        wanted += f" of at least {least}"
    # A text can be a secret; what should have been a number cannot.
    shown = repr(said) if source.kind is not str or among else f"a {type(said).__name__}"
    if where is not None:
        example = f'"{source.built_in}"' if among else kind.in_file
        raise ConfigError(
            f"{name} in {where} is {shown}, not {wanted}; write it as in {name} = {example}"
        )
    variable = f"TENURE_{name.upper()}"
    example = source.built_in if among else kind.in_environment
    raise ConfigError(f"{variable} is {shown}, not {wanted}; set it as in {variable}={example}")


_OURS = "tenure"
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def module_name(name: str) -> str:
    """A module's name as others import it, also of the one that is being run."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    # What is piped into Python has a file's name that is none: <stdin>.
    return Path(file).stem if file and not file.startswith("<") else "__main__"


def calling_module() -> str:
    """The name of the module whose code called into Tenure."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect's way takes the source of every frame
    while True:
        name: str = frame.f_globals.get("__name__", "__main__")
        if frame.f_back is None or not f"{name}.".startswith(f"{_OURS}."):
            return module_name(name)
        frame = frame.f_back


def ordered(version: object) -> Sequence[int]:
    """A version as numbers that can be compared; zeros at its end count for nothing, and none at
    all is the lowest. InvalidValue for what has no order."""
    if version is None:
        return ()
    found = None
    # Not a float: 1.10 would be 1.1.
    if isinstance(version, str | int) and not isinstance(version, bool):
        found = _VERSION.fullmatch(str(version).strip())
    numbers = [int(part) for part in found[1].split(".")] if found else []
    if not numbers or max(numbers) > _LARGEST:
        raise InvalidValue(
            f"version is {version!r}, which says not whether it is older or newer than another; "
            'write numbers that grow with every release, as in version="2026.11.15" or a build '
            "number"
        )
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
