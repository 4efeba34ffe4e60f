"""A suite that cannot fail proves nothing: each deliberate bug must make one fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proof.mutations import BUGS
from tenure._store.postgres import statements

if TYPE_CHECKING:
    from proof.mutations import Bug

TESTS_FAILED = 1
TEXTS = Path(statements.__file__).parent / "sql"
IN_A_SUITE = [bug for bug in BUGS if bug.caught_by]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", IN_A_SUITE, ids=lambda bug: bug.name)
def test_a_suite_notices_the_bug(bug: Bug, pytestconfig: pytest.Config) -> None:
    """The suite named in the catalogue passes without the bug, as part of this very run."""
    assert bug.caught_by
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


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_still_fits_what_it_changes(bug: Bug) -> None:
    """The bed alone shows some of them, which takes longer than a test may."""
    assert bug.edits or bug.patch
    for edit in bug.edits:
        assert edit.old in (TEXTS / f"{edit.statement}.sql").read_text()


def test_at_least_twenty_bugs_each_with_a_run_and_an_invariant(pytestconfig: pytest.Config) -> None:
    assert len(BUGS) >= 20
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert re.fullmatch(r"I([1-9]|10)", bug.invariant)
        assert bug.run.words
        if bug.caught_by:
            assert Path(pytestconfig.rootpath, bug.caught_by).exists()


def test_few_bugs_are_left_to_the_suites_alone() -> None:
    assert len([bug for bug in BUGS if not bug.run.report]) <= len(BUGS) / 3
