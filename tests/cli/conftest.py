"""Run the command in its own process, with a clean environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.store import Database

SETTINGS = ("TENURE_", "DATABASE_URL", "XDG_", "PG", "NO_COLOR", "FORCE_COLOR")


@dataclass(frozen=True, slots=True)
class Ended:
    """An ended command: its exit code, its data and its messages."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> tuple[str, str, str]:
        """What, why and what to do: the last three lines on stderr."""
        what, why, todo = self.err.splitlines()[-3:]
        assert "Traceback" not in self.err
        return (
            what.removeprefix("error: "),
            why.removeprefix("why:   "),
            todo.removeprefix("do:    "),
        )


class Command:
    """Runs `tenure` and waits for its end."""

    def __init__(self, directory: Path, *, url: str | None = None) -> None:
        self.directory = directory
        self.run_directory = directory / "run"
        self._url = url

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment without settings of Tenure or libpq, and with these."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS)}
        given = {"TENURE_RUN_DIR": str(self.run_directory)} | more
        return plain | ({"TENURE_DATABASE_URL": self._url} if self._url else {}) | given

    def __call__(self, *arguments: object, stdin: str = "", **environment: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "tenure", *map(str, arguments)],
            cwd=self.directory,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command without a database."""
    return Command(tmp_path)


@pytest.fixture
def tenure(tmp_path: Path, db: Database) -> Command:
    """The command over the test's database."""
    return Command(tmp_path, url=db.url)


@pytest.fixture
def bare(tmp_path: Path, empty_database: str) -> Command:
    """The command over a database without a schema."""
    return Command(tmp_path, url=empty_database)
