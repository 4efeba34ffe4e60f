"""The examples' own tests, which use the testing kit, pass where a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from support.binaries import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def run(example: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT / "examples" / example,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_those_of_the_shop_on_fastapi(tmp_path: Path) -> None:
    off = [
        part
        for name in ("cacheprovider", "randomly", "schemathesis")
        for part in ("-p", f"no:{name}")
    ]
    done = run("fastapi_shop", "-m", "pytest", "-q", *off)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_those_of_the_shop_on_django(empty_database: str) -> None:
    done = run("django_shop", "manage.py", "test", "--noinput", DATABASE_URL=empty_database)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 2 tests" in done.stderr
