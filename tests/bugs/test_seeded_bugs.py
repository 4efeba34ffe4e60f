"""A suite that cannot fail proves nothing: each deliberate bug must make one fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proof.bugs import BUGS

if TYPE_CHECKING:
    from proof.bugs import Bug

TESTS_FAILED = 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_suite_notices_the_bug(bug: Bug, pytestconfig: pytest.Config) -> None:
    """The suite named in the catalogue passes without the bug, as part of this very run."""
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            bug.caught_by,
            "--bug",
            bug.name,
            "-x",
            "-q",
            "--no-header",
        ],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert run.returncode == TESTS_FAILED, run.stdout[-4000:] + run.stderr[-2000:]
    assert "AssertionError: " + bug.name not in run.stdout, "the bug no longer fits the statement"


def test_at_least_ten_bugs_each_with_a_suite_that_exists(pytestconfig: pytest.Config) -> None:
    assert len(BUGS) >= 10
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert Path(pytestconfig.rootpath, bug.caught_by).exists()
