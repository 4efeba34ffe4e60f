"""A copy of the repository with seeded holes, and how the tests that guard against them fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from proof.mutations.holes import HOLES
from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.mutations.holes import Hole

# What tests import or holes edit. The rest is only linked.
_COPIED = ("src", "tests", "support", "proof")
_WITHIN = 240


def failures(holes: Sequence[Hole]) -> dict[str, str]:
    """Seed all these holes, run their tests, and return each failure by its hole's name.

    A test that passes has none, nor has one whose fixtures fail.
    """
    with tempfile.TemporaryDirectory(prefix="tenure-holes-") as directory:
        root = Path(directory) / "tree"
        _copy(root)
        for hole in holes:
            _seed(root, hole)
        report = Path(directory) / "report.xml"
        options = ("-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly")
        run = subprocess.run(  # noqa: S603 - the tests of this repository
            [
                *(sys.executable, "-m", "pytest", *(hole.test for hole in holes), *options),
                f"--junitxml={report}",
            ],
            cwd=root,
            # Every process that a test starts has the holes, too.
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            capture_output=True,
            text=True,
            timeout=_WITHIN,
            check=False,
        )
        if not report.exists():
            raise AssertionError(run.stdout[-4000:] + run.stderr[-2000:])
        failed = _failed(report)
    return {hole.name: failed[name] for hole in holes if (name := _case(hole.test)) in failed}


def _copy(root: Path) -> None:
    root.mkdir()
    for each in ROOT.iterdir():
        if each.name in _COPIED:
            # With compiled files: they fit all files that are not edited.
            shutil.copytree(each, root / each.name)
        elif each.is_file() and each.name != ".git":
            shutil.copy2(each, root / each.name)
        elif each.is_dir() and each.name != ".git":
            (root / each.name).symlink_to(each)


def _seed(root: Path, hole: Hole) -> None:
    for edit in hole.edits:
        file = root / edit.file
        text = file.read_text()
        if text.count(edit.old) != 1:
            raise AssertionError(f"{hole.name}: {edit.file} must have {edit.old!r} once")
        file.write_text(text.replace(edit.old, edit.new))


def _case(test: str) -> tuple[str, str]:
    """Return a test's module and name, as a report has them. One of several cases is enough."""
    path, _, name = test.partition("::")
    return path.removesuffix(".py").replace("/", "."), name


def _failed(report: Path) -> dict[tuple[str, str], str]:
    failed: dict[tuple[str, str], str] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        failure = case.find("failure")
        if failure is not None:
            place, name = case.get("classname", ""), case.get("name", "")
            text = f"{failure.get('message', '')}\n{failure.text or ''}"
            failed[place, name] = text
            failed.setdefault((place, name.partition("[")[0]), text)
    return failed


def main(names: Sequence[str]) -> int:
    """Seed each of these holes alone (default: all), and print how its test fails. A name is that
    of a hole, or the number of a finding.
    """
    missed = 0
    for hole in HOLES:
        if not names or hole.name in names or hole.finding in names:
            failure = failures((hole,)).get(hole.name, "")
            noticed = hole.shows in failure
            missed += not noticed
            print(hole.name, "noticed" if noticed else "NOT NOTICED", sep=": ")
            print("   ", "\n    ".join(failure.splitlines()[: 3 if noticed else 60]), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
