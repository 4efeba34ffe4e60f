"""The second type checker sees the public API, and finds every type of it known."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Django's classes are configured by attributes that its own stubs leave to be inferred; the second
# is a private part of the testing kit; the server's rooms are a program's.
APART = ("tenure.contrib.django.", "tenure.testing.runner.", "tenure.server.")
PYRIGHT = ROOT / ".cache/pyright/node_modules/pyright/index.js"


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and the packages of this one behind it."""
    made = tmp_path_factory.mktemp("typed") / "venv"
    venv.create(made)
    [site] = made.glob("lib/python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    [ours] = {path for path in sys.path if path.endswith("site-packages")}
    for package in Path(ours).iterdir():
        # By link and not by a .pth: that would bring this checkout along, as an editable one.
        if "tenure" not in package.name:
            (site / package.name).symlink_to(package)
    return made


@pytest.mark.skipif(not PYRIGHT.exists(), reason="fetched by: just pyright")
def test_pyright_knows_every_type_of_the_public_api(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["node", PYRIGHT, "--verifytypes", "tenure", "--ignoreexternal", "--outputjson"],  # noqa: S607 - whichever node npm has used
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{installed / 'bin'}:{os.environ['PATH']}"},
        check=False,
        capture_output=True,
        text=True,
    )
    document = json.loads(done.stdout)["typeCompleteness"]
    assert document["exportedSymbolCounts"]["withKnownType"] > 500
    unclear = [
        f"{symbol['name']}: {fault['message']}"
        for symbol in document["symbols"]
        if symbol["isExported"]
        and not symbol["isTypeKnown"]
        and not symbol["name"].startswith(APART)
        for fault in symbol["diagnostics"]
    ]
    assert unclear == []
