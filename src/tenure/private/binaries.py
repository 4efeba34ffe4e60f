"""Finds the PostgreSQL server that is installed here. Starts none."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

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
